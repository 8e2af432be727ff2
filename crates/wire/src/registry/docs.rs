//! The reply of COMMAND DOCS: each command's documentation with its arguments as a tree.

use super::describe::find;
use super::spec::CommandSpec;
use super::syntax::{Argument, ArgumentKind, parse_syntax};
use crate::Reply;
use crate::request::Arguments;

/// Documentation of the named commands, or of all; unknown names are left out.
pub(super) fn write_docs(names: Arguments<'_>, reply: &mut Reply<'_>) {
    let documented: Vec<&CommandSpec> = match names.len() {
        0 => super::all().collect(),
        _ => names.iter().filter_map(find).collect(),
    };
    reply.map(documented.len());
    documented.iter().for_each(|spec| write_entry(spec, reply));
}

fn write_entry(spec: &CommandSpec, reply: &mut Reply<'_>) {
    let arguments = parse_syntax(spec.syntax);
    reply.bulk(spec.full_name.as_bytes());
    reply.map(4 + usize::from(!arguments.is_empty()) + usize::from(!spec.subcommands.is_empty()));
    let texts = [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ];
    for (field, text) in texts {
        reply.bulk(field.as_bytes());
        reply.bulk(text.as_bytes());
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        write_arguments(&arguments, &mut KeyIndex { next: 0, count: spec.keys.len() }, reply);
    }
    if !spec.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(spec.subcommands.len());
        spec.subcommands.iter().for_each(|subcommand| write_entry(subcommand, reply));
    }
}

/// Which key specification the next argument of type key belongs to: they come in the same order.
struct KeyIndex {
    next: usize,
    count: usize,
}

impl KeyIndex {
    /// `None` for what is called a key and is none to the router, such as CLUSTER KEYSLOT's.
    fn take(&mut self) -> Option<usize> {
        let last = self.count.checked_sub(1)?;
        let index = self.next.min(last);
        self.next += 1;
        Some(index)
    }
}

fn write_arguments(arguments: &[Argument], keys: &mut KeyIndex, reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        let (kind, children) = match &argument.kind {
            ArgumentKind::Word(kind) => (*kind, None),
            ArgumentKind::OneOf(alternatives) => ("oneof", Some(alternatives)),
            ArgumentKind::Block(parts) => ("block", Some(parts)),
        };
        let key_index = if kind == "key" { keys.take() } else { None };
        let flags = usize::from(argument.optional) + usize::from(argument.multiple);
        let kind = if kind == "key" && key_index.is_none() { "string" } else { kind };
        let optional_fields =
            [key_index.is_some(), argument.token.is_some(), flags > 0, children.is_some()].map(usize::from);
        reply.map(2 + optional_fields.iter().sum::<usize>());
        reply.bulk(b"name");
        reply.bulk(argument.name.as_bytes());
        reply.bulk(b"type");
        reply.bulk(kind.as_bytes());
        if let Some(index) = key_index {
            reply.bulk(b"key_spec_index");
            reply.integer(index as i64);
        }
        if let Some(token) = argument.token {
            reply.bulk(b"token");
            reply.bulk(token.as_bytes());
        }
        if flags > 0 {
            reply.bulk(b"flags");
            reply.set(flags);
            if argument.optional {
                reply.simple("optional");
            }
            if argument.multiple {
                reply.simple("multiple");
            }
        }
        if let Some(children) = children {
            reply.bulk(b"arguments");
            write_arguments(children, keys, reply);
        }
    }
}
