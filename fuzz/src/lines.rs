//! Target `lines`: two nodes, and somebody between them who has everything but the key. What an end hears is what the other one
//! said, from the first frame on, in order; and frames' bodies are read as they were written, or refused.

use base::{ConnectionId, CoreId, Effect, InstanceName, NodeId};
use wire::frame::{FRAME_HEAD_BYTES, Frame, Opened, ParsedFrame, seal};
use wire::line::Line;
use wire::trust::{Greeted, Party, Purpose, Speaker, Token};

use crate::source::Source;

const BYTES_MAX: usize = 512;
const CLUSTER: [u8; 16] = [5; 16];

struct End {
    line: Line,
    speaker: Speaker,
    greeted: Option<Greeted>,
    said: Vec<Vec<u8>>,
    heard: usize,
}

fn name(node: u32) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(0) }
}

impl End {
    fn hear(&mut self, bytes: &[u8], other: &[Vec<u8>], from: u32) {
        self.line.receive(bytes);
        if let Some(greeted) = self.line.greet(0, &mut self.speaker) {
            assert_eq!((greeted.from.name, greeted.purpose), (name(from), Purpose::Link));
            self.greeted = Some(greeted);
        }
        while let Opened::Whole { kind, body, bytes } = self.line.frame(BYTES_MAX) {
            assert_eq!((kind, Some(body)), (40, other.get(self.heard).map(Vec::as_slice)), "nobody else is heard");
            self.heard += 1;
            self.line.skip(bytes);
        }
    }

    fn flush(&mut self) -> Vec<u8> {
        let mut effects = Vec::new();
        self.line.flush(&mut effects);
        self.line.on_sent();
        let bytes = |effect| if let Effect::Send { buffer, .. } = effect { buffer } else { Vec::new() };
        effects.into_iter().flat_map(bytes).collect()
    }
}

/// Input: a seed and what is done one after the other; or an odd byte, a kind and a frame's body.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    match source.byte() & 1 {
        1 => body(source.byte(), source.rest()),
        _ => conversation(&mut source),
    }
}

fn body(kind: u8, body: &[u8]) {
    let Some(frame) = Frame::of(kind, body) else { return };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    seal(kind, &mut bytes, |out| out.extend_from_slice(body));
    frame.encode(&mut again);
    assert_eq!(again, bytes, "there is one way to say a thing");
    assert_eq!(Frame::parse(&bytes), ParsedFrame::Whole(frame, FRAME_HEAD_BYTES + body.len()));
}

fn conversation(source: &mut Source<'_>) {
    let seed = u64::from(source.byte());
    let mut speakers = [1, 2].map(|node| {
        let mut speaker = Speaker::new(&Token::new([7; 16]), seed ^ u64::from(node));
        speaker.set_name(CLUSTER, Party { name: name(node), incarnation: 1 });
        speaker
    });
    let id = ConnectionId { index: 1, generation: 1 };
    let dials = Line::dialed(0, (id, String::new()), &mut speakers[0], (Purpose::Link, name(2)));
    let accepts = Line::accepted(0, id, String::new(), &[Purpose::Link]);
    let end = |(line, speaker)| End { line, speaker, greeted: None, said: Vec::new(), heard: 0 };
    let mut ends = [dials, accepts].into_iter().zip(speakers).map(end);
    let mut ends: [End; 2] = [ends.next().expect("one"), ends.next().expect("two")];
    // Everything that was ever on its way, by who said it.
    let mut seen: Vec<(usize, Vec<u8>)> = Vec::new();
    while !source.is_empty() {
        let (what, by) = (source.byte(), usize::from(source.byte() & 1));
        let mut bytes = match what % 6 {
            0 | 1 => ends[by].flush(),
            2 => {
                let body = source.string();
                if ends[by].line.is_proven() && body.len() < 300 {
                    ends[by].line.send(|out| seal(40, out, |out| out.extend_from_slice(body)));
                    ends[by].said.push(body.to_vec());
                }
                continue;
            }
            3 => source.string().to_vec(),
            _ if seen.is_empty() => continue,
            // Of either end: said again, or said back.
            _ => seen[source.below(seen.len())].1.clone(),
        };
        if what % 6 == 1 && !bytes.is_empty() {
            let place = usize::from(source.short()) % bytes.len();
            bytes[place] ^= source.byte();
        }
        if matches!(what % 6, 0 | 1) {
            seen.push((by, bytes.clone()));
        }
        let [one, two] = &mut ends;
        let (from, to) = if by == 0 { (&*one, two) } else { (&*two, one) };
        let said = from.said.clone();
        to.hear(&bytes, &said, by as u32 + 1);
    }
}
