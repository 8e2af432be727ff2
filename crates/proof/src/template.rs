//! The little language in which the catalogue says what a command's arguments look like.
//!
//! ```text
//! SET <s> <v> *[ NX | XX | GET | EX <ttl> ]
//!  │   │   │   └ any of the alternatives, in any order, some of them twice
//!  │   │   └──── a value        [ … | … ] one alternative or none
//!  │   └──────── a string's key ( … | … ) exactly one alternative
//!  └──────────── a word, sent in random case        +( … ) one to four times
//! ```

use base::rng::Rng;

use crate::values::{Pool, Slot};

/// One part of a template.
#[derive(Clone, Debug)]
pub enum Part {
    /// A fixed word.
    Word(String),
    /// A value of a named kind.
    Slot(Slot),
    /// Exactly one of these.
    One(Vec<Vec<Part>>),
    /// One of these or none.
    Optional(Vec<Vec<Part>>),
    /// Up to four of these in random order, repeats allowed.
    Several(Vec<Vec<Part>>),
    /// One to four times.
    Repeat(Vec<Vec<Part>>),
}

/// Parses the text of one template.
///
/// # Panics
/// On text outside the language: the catalogue is a constant of this crate, and a test parses all of it.
pub fn parse(text: &str) -> Vec<Part> {
    let mut tokens = text.split_ascii_whitespace().peekable();
    let mut alternatives = parse_alternatives(&mut tokens);
    assert!(tokens.next().is_none() && alternatives.len() == 1, "unbalanced template {text:?}");
    alternatives.remove(0)
}

fn parse_alternatives<'a>(tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Vec<Vec<Part>> {
    let mut alternatives = vec![Vec::new()];
    while let Some(token) = tokens.next_if(|token| !matches!(*token, ")" | "]")) {
        let part = match token {
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "(" => Part::One(parse_group(tokens)),
            "[" => Part::Optional(parse_group(tokens)),
            "*[" => Part::Several(parse_group(tokens)),
            "+(" => Part::Repeat(parse_group(tokens)),
            slot if slot.starts_with('<') => Part::Slot(Slot::named(slot.trim_matches(['<', '>']))),
            word => Part::Word(word.to_string()),
        };
        alternatives.last_mut().expect("starts with one alternative").push(part);
    }
    alternatives
}

fn parse_group<'a>(tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Vec<Vec<Part>> {
    let alternatives = parse_alternatives(tokens);
    assert!(tokens.next().is_some(), "a group of the catalogue is not closed");
    alternatives
}

/// How to fill the slots of a template.
pub struct Filler<'a> {
    /// Chooses alternatives and values.
    pub rng: &'a mut Rng,
    /// Keys and values to choose from.
    pub pool: &'a Pool,
    /// Put this value into the n-th numeric slot, for the table of boundaries.
    pub forced: Option<(usize, &'a [u8])>,
    /// Numeric slots filled so far.
    pub numeric_seen: usize,
}

impl Filler<'_> {
    /// Appends the arguments that `parts` stands for.
    pub fn fill(&mut self, parts: &[Part], output: &mut Vec<Vec<u8>>) {
        for part in parts {
            match part {
                Part::Word(word) => output.push(self.in_some_case(word)),
                Part::Slot(slot) => self.fill_slot(*slot, output),
                Part::One(choices) => self.fill_one(choices, output),
                Part::Optional(choices) => {
                    if self.rng.chance(1, 2) {
                        self.fill_one(choices, output);
                    }
                }
                Part::Several(choices) => {
                    for _ in 0..[0, 0, 1, 1, 1, 2, 2, 3, 4][self.rng.below(9) as usize] {
                        self.fill_one(choices, output);
                    }
                }
                Part::Repeat(choices) => {
                    for _ in 0..[1, 1, 2, 3, 4][self.rng.below(5) as usize] {
                        self.fill_one(choices, output);
                    }
                }
            }
        }
    }

    fn fill_one(&mut self, choices: &[Vec<Part>], output: &mut Vec<Vec<u8>>) {
        let chosen = self.rng.below(choices.len() as u64) as usize;
        self.fill(&choices[chosen], output);
    }

    fn fill_slot(&mut self, slot: Slot, output: &mut Vec<Vec<u8>>) {
        if slot.is_numeric() {
            let index = self.numeric_seen;
            self.numeric_seen += 1;
            if let Some((forced, value)) = self.forced
                && forced == index
            {
                output.push(value.to_vec());
                return;
            }
        }
        self.pool.fill(slot, self.rng, output);
    }

    fn in_some_case(&mut self, word: &str) -> Vec<u8> {
        match self.rng.below(8) {
            0 => word.to_ascii_lowercase().into_bytes(),
            1 => {
                word.bytes().map(|byte| if self.rng.chance(1, 2) { byte.to_ascii_lowercase() } else { byte }).collect()
            }
            _ => word.as_bytes().to_vec(),
        }
    }
}
