//! Two ends that share a key, and somebody between them who has not got it.

use base::{CoreId, NodeId};
use proptest::prelude::*;

use super::*;
use crate::frame::seal;
use crate::trust::{MANAGER, Party, Token};

const CLUSTER: [u8; 16] = [5; 16];
const PURPOSES: &[Purpose] = &[Purpose::Managers, Purpose::Enlist];
/// Longest frame here.
const BYTES_MAX: usize = 64;

/// One end, and what it heard.
struct End {
    speaker: Speaker,
    line: Line,
    greeted: Option<Greeted>,
    heard: Heard,
}

fn party(node: u32) -> Party {
    Party::manager(NodeId(node), u64::from(node) << 16)
}

fn speaker(token: u8, seed: u64, me: Party) -> Speaker {
    let mut speaker = Speaker::new(&Token::new([token; 16]), seed);
    speaker.set_name(CLUSTER, me);
    speaker
}

fn id() -> ConnectionId {
    ConnectionId { index: 1, generation: 1 }
}

impl End {
    fn dials(mut speaker: Speaker, purpose: Purpose, to: InstanceName) -> End {
        let line = Line::dialed(0, (id(), "there".to_owned()), &mut speaker, (purpose, to));
        End { speaker, line, greeted: None, heard: Vec::new() }
    }

    fn accepts(speaker: Speaker) -> End {
        let line = Line::accepted(0, id(), "here".to_owned(), PURPOSES);
        End { speaker, line, greeted: None, heard: Vec::new() }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.line.receive(bytes);
        self.greeted = self.line.greet(0, &mut self.speaker).or(self.greeted);
        while let Opened::Whole { kind, body, bytes } = self.line.frame(BYTES_MAX) {
            self.heard.push((kind, body.to_vec()));
            self.line.skip(bytes);
        }
    }

    fn say(&mut self, kind: u8, body: &[u8]) {
        self.line.send(|out| seal(kind, out, |out| out.extend_from_slice(body)));
    }

    /// What is on its way to the other end.
    fn said(&mut self) -> Vec<u8> {
        let mut effects = Vec::new();
        self.line.flush(&mut effects);
        self.line.on_sent();
        let bytes = |effect| if let Effect::Send { buffer, .. } = effect { buffer } else { Vec::new() };
        effects.into_iter().flat_map(bytes).collect()
    }
}

/// Node 1 dials node 2; all chance is the seed's.
fn ends(seed: u64) -> [End; 2] {
    let to = party(2).name;
    [End::dials(speaker(7, seed, party(1)), Purpose::Managers, to), End::accepts(speaker(7, seed ^ 1, party(2)))]
}

/// What one end said at once.
type Said = (usize, Vec<u8>);
/// Kinds and bodies of frames.
type Heard = Vec<(u8, Vec<u8>)>;

/// What was said one after the other: three words, then frames, some both ways; and what each end heard.
fn conversation(seed: u64) -> (Vec<Said>, [Heard; 2]) {
    let [mut one, mut two] = ends(seed);
    let mut all = Vec::new();
    for _ in 0..2 {
        let said = one.said();
        two.hear(&said);
        all.push((0, said));
        let said = two.said();
        one.hear(&said);
        all.push((1, said));
    }
    assert_eq!(one.greeted.map(|greeted| greeted.from), Some(party(2)));
    assert_eq!(two.greeted.map(|greeted| greeted.from), Some(party(1)));
    all.retain(|(_, said)| !said.is_empty());
    for turn in 0..8_u8 {
        let (by, body) = (usize::from(turn % 3 == 2), [turn; 30]);
        let [from, to] = if by == 0 { [&mut one, &mut two] } else { [&mut two, &mut one] };
        from.say(40 + turn, &body[..usize::from(turn) * 4]);
        let said = from.said();
        to.hear(&said);
        all.push((by, said));
    }
    (all, [one.heard, two.heard])
}

/// What both ends hear when somebody between them has changed what was said: that is given to fresh ends with the same chance.
fn replayed(seed: u64, all: &[Said]) -> [End; 2] {
    let mut ends = ends(seed);
    // What they say themselves is not looked at: it is the same as long as what they hear is.
    for (by, said) in all {
        ends[1 - by].hear(said);
    }
    ends
}

#[test]
fn every_flipped_bit_ends_the_connection_and_nothing_of_it_is_heard() {
    let (all, heard) = conversation(3);
    let same = replayed(3, &all);
    assert_eq!([&same[0].heard, &same[1].heard], [&heard[0], &heard[1]], "a world without harm");
    for number in 0..all.len() {
        let by = all[number].0;
        let before = all[..number].iter().skip(3).filter(|(other, _)| *other == by).count();
        for bit in 0..all[number].1.len() * 8 {
            let mut harmed = all.clone();
            harmed[number].1[bit / 8] ^= 1 << (bit % 8);
            // A length that was made larger waits for more: the conversation goes on.
            harmed.push((by, vec![0; 2 * BYTES_MAX + 2 * HANDSHAKE_FRAME_BYTES_MAX]));
            let ends = replayed(3, &harmed);
            let to = &ends[1 - by];
            assert!(to.line.is_closing(), "frame {number}, bit {bit}");
            assert_eq!(to.heard, heard[1 - by][..before], "frame {number}, bit {bit}");
        }
    }
}

#[test]
fn who_listens_hears_neither_what_is_said_nor_that_it_is_said_again() {
    let [mut one, mut two] = ends(8);
    talk(&mut one, &mut two);
    let secret = b"a value that nobody else may read";
    let [first, second] = [0, 1].map(|_| {
        one.say(40, secret);
        one.said()
    });
    let shows = |said: &[u8]| secret.windows(4).any(|part| said.windows(4).any(|other| other == part));
    assert!(!shows(&first) && !shows(&second));
    assert_eq!(first[..4], second[..4], "its length stands there");
    let same = first[4..].iter().zip(&second[4..]).filter(|(one, other)| one == other).count();
    assert!(same <= 8, "{same} bytes are the same");
    two.hear(&[first, second].concat());
    assert_eq!(two.heard, [(40, secret.to_vec()), (40, secret.to_vec())]);
}

#[test]
fn frames_that_are_doubled_left_out_swapped_or_said_back_end_the_connection() {
    let (all, heard) = conversation(4);
    // What node 1 says: its frames stand here.
    let own: Vec<usize> = (3..all.len()).filter(|number| all[*number].0 == 0).collect();
    let expect = |what: &str, harmed: Vec<Said>, count: usize| {
        let [_, to] = replayed(4, &harmed);
        assert_eq!((to.line.is_closing(), &to.heard[..]), (true, &heard[1][..count]), "{what}");
    };
    for (count, place) in own.iter().enumerate().skip(1) {
        let earlier = all[own[count - 1]].clone();
        expect("replayed", [&all[..*place], &[earlier], &all[*place..]].concat(), count);
        expect("doubled", [&all[..=*place], &all[*place..]].concat(), count + 1);
        let mut swapped = all.clone();
        swapped.swap(own[count - 1], *place);
        expect("swapped", swapped, count - 1);
        // Of the same number, if the other one said so many; else its last.
        let others: Vec<&Said> = all[3..].iter().filter(|(by, _)| *by == 1).collect();
        for back in [others.get(count), others.last()].into_iter().flatten() {
            expect("said back", [&all[..*place], &[(0, back.1.clone())], &all[*place..]].concat(), count);
        }
        if count + 1 < own.len() {
            expect("left out", [&all[..*place], &all[place + 1..]].concat(), count);
        }
        for cut in 1..all[*place].1.len() {
            let mut harmed = all.clone();
            harmed[*place].1.truncate(cut);
            harmed.push((0, vec![0; 2 * BYTES_MAX]));
            expect("cut", harmed, count);
        }
    }
}

#[test]
fn frames_and_proofs_of_another_connection_are_not_believed() {
    let ((mine, heard), (other, _)) = (conversation(5), conversation(6));
    for number in (0..mine.len()).filter(|number| *number != 0) {
        let mut harmed = mine.clone();
        harmed[number] = other[number].clone();
        let (by, before) = (mine[number].0, number.saturating_sub(3));
        let ends = replayed(5, &harmed);
        assert!(ends[1 - by].line.is_closing(), "{number}");
        assert!(ends[1 - by].heard.len() <= before && heard[1 - by].starts_with(&ends[1 - by].heard), "{number}");
    }
    // A whole conversation, said again to somebody who begins a new one.
    let mut again = End::accepts(speaker(7, 99, party(2)));
    mine.iter().filter(|(by, _)| *by == 0).for_each(|(_, said)| again.hear(said));
    assert_eq!(again.line.take_distrust(), Some(Distrust::NoProof));
    assert!(again.heard.is_empty() && again.greeted.is_none());
    let mut again = End::dials(speaker(7, 98, party(1)), Purpose::Managers, party(2).name);
    mine.iter().filter(|(by, _)| *by == 1).for_each(|(_, said)| again.hear(said));
    assert_eq!((again.line.take_distrust(), again.greeted), (Some(Distrust::NoProof), None));
}

/// Lets them talk until nothing is on its way.
fn talk(one: &mut End, two: &mut End) {
    for _ in 0..3 {
        two.hear(&one.said());
        one.hear(&two.said());
    }
}

fn distrusts(mut one: End, mut two: End) -> [Option<Distrust>; 2] {
    talk(&mut one, &mut two);
    assert!(one.greeted.is_none() && two.greeted.is_none() && !one.line.is_proven() && !two.line.is_proven());
    [one.line.take_distrust(), two.line.take_distrust()]
}

#[test]
fn who_has_another_key_or_is_of_another_cluster_is_not_heard() {
    let to = party(2).name;
    let dials = |token, purpose, to| End::dials(speaker(token, 1, party(1)), purpose, to);
    let accepts = || End::accepts(speaker(7, 2, party(2)));
    assert_eq!(distrusts(dials(8, Purpose::Managers, to), accepts()), [Some(Distrust::NoProof), None]);
    let mut foreign = speaker(7, 1, party(1));
    foreign.set_name([6; 16], party(1));
    let foreign = End::dials(foreign, Purpose::Managers, to);
    assert_eq!(distrusts(foreign, accepts()), [None, Some(Distrust::OtherCluster)]);
    let other_node = dials(7, Purpose::Managers, party(3).name);
    assert_eq!(distrusts(other_node, accepts()), [None, Some(Distrust::OtherEnd)]);
    let link = dials(7, Purpose::Link, InstanceName { node: NodeId(2), core: CoreId(0) });
    assert_eq!(distrusts(link, accepts()), [None, Some(Distrust::OtherEnd)], "a manager has no links");
    let core = dials(7, Purpose::Managers, InstanceName { node: NodeId(2), core: CoreId(0) });
    assert_eq!(distrusts(core, accepts()), [None, Some(Distrust::OtherEnd)]);
    // A core has links, and nothing else.
    let core = Party { name: InstanceName { node: NodeId(2), core: CoreId(0) }, incarnation: 1 };
    for (purpose, to) in
        [(Purpose::Managers, core.name), (Purpose::Enlist, InstanceName { node: NodeId(0), core: MANAGER })]
    {
        let node = if purpose == Purpose::Enlist { Party::newcomer(1) } else { party(1) };
        let mut accepts = End::accepts(speaker(7, 2, core));
        accepts.line = Line::accepted(0, id(), String::new(), &[Purpose::Link]);
        let dials = End::dials(speaker(7, 1, node), purpose, to);
        assert_eq!(distrusts(dials, accepts), [None, Some(Distrust::OtherEnd)], "{purpose:?}");
    }
    // Who dials knows whom it wants, too.
    let mut wrong = dials(7, Purpose::Managers, to);
    let hello = wrong.said();
    let mut right = accepts();
    right.hear(&hello);
    let mut answer = right.said();
    answer[FRAME_HEAD_BYTES + 16] = 3;
    let crc = base::checksum::crc32c(&answer[8..]).to_le_bytes();
    answer[4..8].copy_from_slice(&crc);
    wrong.hear(&answer);
    assert_eq!(wrong.line.take_distrust(), Some(Distrust::OtherEnd));
}

#[test]
fn nobody_is_answered_with_its_own_words() {
    // To who dials, its own hello; and to a node that accepts, what it says itself when it dials.
    let mut one = End::dials(speaker(7, 1, party(1)), Purpose::Managers, party(1).name);
    let hello = one.said();
    one.hear(&hello);
    assert_eq!(one.line.take_distrust(), Some(Distrust::Stranger));
    let mut itself = End::accepts(speaker(7, 2, party(1)));
    itself.hear(&hello);
    assert_eq!(itself.line.take_distrust(), Some(Distrust::OtherEnd));
    // The answer's proof is none of who dialed.
    let [mut one, mut two] = ends(9);
    two.hear(&one.said());
    let answer = two.said();
    let mut proof = Vec::new();
    seal(18, &mut proof, |out| out.extend_from_slice(&answer[answer.len() - 32..]));
    two.hear(&proof);
    assert_eq!(two.line.take_distrust(), Some(Distrust::NoProof));
}

#[test]
fn a_newcomer_proves_the_token_and_nothing_else() {
    let newcomer = |token| {
        let mut speaker = Speaker::new(&Token::new([token; 16]), 1);
        speaker.set_name([0; 16], Party::newcomer(77));
        End::dials(speaker, Purpose::Enlist, InstanceName { node: NodeId(0), core: MANAGER })
    };
    let accepts = || End::accepts(speaker(7, 2, party(2)));
    let (mut one, mut two) = (newcomer(7), accepts());
    talk(&mut one, &mut two);
    let greeted = |end: &End| end.greeted.map(|greeted| (greeted.purpose, greeted.from));
    assert_eq!(greeted(&one), Some((Purpose::Enlist, party(2))));
    assert_eq!(greeted(&two), Some((Purpose::Enlist, Party::newcomer(77))));
    assert_eq!(distrusts(newcomer(8), accepts()), [Some(Distrust::NoProof), None]);
}

#[test]
fn who_proves_nothing_costs_little() {
    // Many bytes that are no hello, and a hello that never ends.
    for flood in [vec![0; 1 << 16], [&44_u32.to_le_bytes()[..], &[1; 39]].concat()] {
        let mut end = End::accepts(speaker(7, 2, party(2)));
        end.hear(&flood);
        end.hear(&flood);
        assert_eq!(end.line.take_distrust(), Some(Distrust::Stranger));
    }
    // Without a name of its own an end answers nobody, and does not keep what comes meanwhile.
    let mut end = End::accepts(Speaker::new(&Token::new([7; 16]), 1));
    let [mut one, _] = ends(1);
    let hello = one.said();
    end.hear(&hello);
    assert!(end.said().is_empty() && !end.line.is_closing());
    end.hear(&[0; 100]);
    assert_eq!(end.line.take_distrust(), Some(Distrust::Stranger));
    // Silence, and one too many.
    let mut end = End::accepts(speaker(7, 2, party(2)));
    end.line.greet(UNPROVEN_MS_MAX * 1000 - 1, &mut end.speaker);
    assert!(!end.line.is_closing());
    end.line.greet(UNPROVEN_MS_MAX * 1000, &mut end.speaker);
    assert_eq!(end.line.take_distrust(), Some(Distrust::Late));
    let mut lines: Vec<Line> = (0..=UNPROVEN_CONNECTIONS_MAX as u64)
        .map(|now_us| Line::accepted(now_us, id(), String::new(), PURPOSES))
        .collect();
    bound_unproven(lines.iter_mut());
    let closing: Vec<bool> = lines.iter().map(Line::is_closing).collect();
    assert!(closing[0] && !closing[1..].contains(&true), "the oldest goes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However the network cuts bytes into pieces.
    #[test]
    fn pieces_change_nothing(seed: u64, pieces in prop::collection::vec(1_usize..40, 1..40)) {
        let [mut one, mut two] = ends(seed);
        let (mut lengths, mut heard) = (pieces.iter().cycle(), 0);
        for turn in 0..20_u8 {
            let [from, to] = if turn % 2 == 0 { [&mut one, &mut two] } else { [&mut two, &mut one] };
            if from.greeted.is_some() {
                from.say(40, &[turn; 20]);
                from.say(41, &[]);
                heard += 2;
            }
            let said = from.said();
            let mut rest = &said[..];
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at((*lengths.next().unwrap_or(&1)).min(rest.len()));
                to.hear(piece);
                rest = behind;
            }
        }
        prop_assert_eq!(one.heard.len() + two.heard.len(), heard);
        prop_assert!(heard > 20 && !one.line.is_closing() && !two.line.is_closing());
    }

    /// Bytes that nobody said.
    #[test]
    fn what_nobody_said_is_never_heard(seed: u64, after in 0_usize..9, bytes in prop::collection::vec(any::<u8>(), 1..200)) {
        let (all, heard) = conversation(seed);
        let (before, rest) = all.split_at(after);
        let by = rest[0].0;
        let harmed = [before, &[(by, bytes)], rest, &[(by, vec![0; 300])]].concat();
        let ends = replayed(seed, &harmed);
        prop_assert!(ends[1 - by].line.is_closing());
        prop_assert!(heard[1 - by].starts_with(&ends[1 - by].heard));
        prop_assert!(ends[1 - by].heard.len() <= after.saturating_sub(3));
    }
}
