//! Questions to other members, and their answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use openraft::AsyncRuntime;

use crate::event::Effect;
use crate::format::frame::{self, Answer, Question};
use crate::host::channel::oneshot::{self, OneshotSender};
use crate::host::runtime::HostRuntime;
use crate::ledger::Effects;

/// What one member asks others.
pub struct Post {
    effects: Effects,
    asked: Cell<u64>,
    /// Who waits for which answer of whom.
    answers: RefCell<BTreeMap<u64, (u64, OneshotSender<Answer>)>>,
}

impl Post {
    /// `first_question` differs from start to start, so that an old answer fits no new question.
    pub fn new(first_question: u64, effects: Effects) -> Rc<Post> {
        Rc::new(Post { effects, asked: Cell::new(first_question), answers: RefCell::default() })
    }

    /// Ask a member; `None` if no answer came in time.
    pub async fn ask(&self, to: u64, question: &Question, patience: Duration) -> Option<Answer> {
        let number = self.asked.get();
        self.asked.set(number.wrapping_add(1));
        let (sender, receiver) = oneshot::channel();
        self.answers.borrow_mut().insert(number, (to, sender));
        let _forgotten = Forgotten { post: self, number };
        self.send(to, frame::encode_question(number, question));
        HostRuntime::timeout(patience, receiver).await.ok()?.ok()
    }

    /// An answer came. One that nobody waits for, or that another member gives than was asked, is dropped.
    pub fn on_answer(&self, from: u64, number: u64, answer: Answer) {
        let mut answers = self.answers.borrow_mut();
        if answers.get(&number).is_none_or(|(asked, _)| *asked != from) {
            return;
        }
        let waiting = answers.remove(&number);
        drop(answers);
        waiting.into_iter().for_each(|(_, sender)| sender.put(answer.clone()));
    }

    /// Answer question `number` of `to`.
    pub fn answer(&self, to: u64, number: u64, answer: &Answer) {
        self.send(to, frame::encode_answer(number, answer));
    }

    fn send(&self, to: u64, frame: Vec<u8>) {
        self.effects.borrow_mut().push(Effect::Send { to, frame });
    }
}

/// Whoever asks may be dropped before the answer comes.
struct Forgotten<'a> {
    post: &'a Post,
    number: u64,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.post.answers.borrow_mut().remove(&self.number);
    }
}
