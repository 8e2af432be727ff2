//! A user as rules: what ACL LIST shows and the file keeps, and ACL GETUSER.

use std::io::Write;

use wire::Reply;

use super::user::{Selector, User};

impl User {
    /// `user NAME on …`: rules that make the same user again.
    pub fn line(&self) -> Vec<u8> {
        let mut text = [b"user ", self.name.as_slice(), b" "].concat();
        text.extend_from_slice(self.flags().collect::<Vec<_>>().join(" ").as_bytes());
        for password in &self.passwords {
            text.extend_from_slice(b" #");
            write_hash(password, &mut text);
        }
        text.push(b' ');
        self.selectors[0].write(&mut text);
        for selector in &self.selectors[1..] {
            text.extend_from_slice(b" (");
            selector.write(&mut text);
            text.push(b')');
        }
        text
    }

    fn flags(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            Some(if self.enabled { "on" } else { "off" }),
            self.no_password.then_some("nopass"),
            Some(if self.skips_sanitizing { "skip-sanitize-payload" } else { "sanitize-payload" }),
        ];
        flags.into_iter().flatten()
    }

    /// The reply of ACL GETUSER.
    pub fn write_details(&self, reply: &mut Reply<'_>) {
        reply.map(6);
        reply.bulk(b"flags");
        let flags: Vec<&str> = self.flags().collect();
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
        reply.bulk(b"passwords");
        reply.array(self.passwords.len());
        for password in &self.passwords {
            let mut text = Vec::new();
            write_hash(password, &mut text);
            reply.bulk(&text);
        }
        self.selectors[0].write_details(reply);
        reply.bulk(b"selectors");
        reply.array(self.selectors.len() - 1);
        for selector in &self.selectors[1..] {
            reply.map(3);
            selector.write_details(reply);
        }
    }
}

impl Selector {
    fn write(&self, text: &mut Vec<u8>) {
        let keys = self.keys();
        text.extend_from_slice(&keys);
        if !keys.is_empty() {
            text.push(b' ');
        }
        if !self.all_channels {
            text.extend_from_slice(b"resetchannels ");
        }
        let channels = self.channels();
        text.extend_from_slice(&channels);
        if !channels.is_empty() {
            text.push(b' ');
        }
        self.commands.write(text);
    }

    fn write_details(&self, reply: &mut Reply<'_>) {
        let mut commands = Vec::new();
        self.commands.write(&mut commands);
        for (field, value) in [("commands", commands), ("keys", self.keys()), ("channels", self.channels())] {
            reply.bulk(field.as_bytes());
            reply.bulk(&value);
        }
    }

    fn keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let write = |pattern: &super::patterns::KeyPattern| {
            let mut text = Vec::new();
            pattern.write(&mut text);
            text
        };
        self.patterns.iter().map(write).collect::<Vec<_>>().join(&b' ')
    }

    fn channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        self.channels.iter().map(|pattern| [b"&", pattern.as_slice()].concat()).collect::<Vec<_>>().join(&b' ')
    }
}

fn write_hash(hash: &[u8], text: &mut Vec<u8>) {
    for byte in hash {
        write!(text, "{byte:02x}").expect("writing to a Vec cannot fail");
    }
}
