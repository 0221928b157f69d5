//! A long walk through sessions with small windows: text of all kinds, NUL among it, outputs of up to ten megabytes,
//! images, parallel calls, plans at their bounds, storms of signals, stops, crashes, further goals. At each step the
//! request fits, every call has its result, the turns tell the task state, and now and then the log is folded anew.
//!
//! `PROPTEST_CASES` (96 by default, 100,000 in `make torture`) sets how long it is, `PROPTEST_RNG_SEED` where it begins.

use deepstrike_kernel::wire::effect::{CallModel, Effect};
use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{Failure, Fault, Finish, Input, Reply, Result as ToolEnd, Start};
use deepstrike_kernel::wire::message::{Image, Opaque, Part, ReplyPart, Thinking, Usage};
use deepstrike_kernel::wire::policy::{Attended, Config, Placement};
use deepstrike_kernel::wire::signal::Urgency;

use crate::say::*;
use crate::world::World;

/// Dice of our own, so that a walk is named by one number.
struct Dice {
    state: u64,
    placement: Placement,
    /// One in so many large outputs is a very large one.
    rarely: u64,
}

impl Dice {
    fn roll(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, most: u64) -> u64 {
        self.roll() % most
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    /// A text: words, one endless word, CJK, emoji, JSON, numbers, nested brackets, NUL.
    fn text(&mut self, most: u64) -> String {
        let scraps = [
            "word ",
            "x",
            "必须保留 ",
            "🛡é",
            "{\"id\": \"a_1\"} ",
            "12345 ",
            "[[[",
            "must not. ",
            "\n",
            "a/b.rs ",
            "\0\u{1} ",
            "Dr. No: ",
        ];
        let scrap = scraps[self.below(12) as usize];
        scrap.repeat(self.below(most) as usize / scrap.len() + 1)
    }

    fn config(&mut self) -> Config {
        let mut config = limited(|limits| {
            (limits.window, limits.reserve, limits.max_turns) = (900 + self.below(6_000), self.below(300), 400);
        });
        config.attended = Attended { approvals: false, suspensions: true };
        config.model.price = self.one_in(2).then(dollar);
        config.placement = self.placement;
        config.summaries = self.one_in(3);
        if self.one_in(8) {
            config.tools.truncate(2);
        }
        config
    }

    fn call(&mut self) -> ReplyPart {
        let name = ["look", "put", "write", "recall", "look"][self.below(5) as usize];
        match self.below(6) {
            0 => bad_call(name),
            1 => call_as("", "update_plan", &self.plan()),
            2 => {
                let most = 3_000;
                let args = serde_json::json!({"text": self.text(most), "n": self.below(99)});
                call_as("again", name, &args.to_string())
            }
            _ => call_as("again", name, &format!("{{\"n\":{}}}", self.below(1_000))),
        }
    }

    fn plan(&mut self) -> String {
        let (steps, most) = if self.one_in(8) { (45, 400) } else { (self.below(4), 20) };
        let status = ["todo", "doing", "done"];
        let steps = (0..steps).map(|n| {
            let text = format!("step {n} {}", self.text(most));
            serde_json::json!({"text": text, "status": status[self.below(3) as usize]})
        });
        let steps: Vec<_> = steps.collect();
        serde_json::json!({"steps": steps, "progress": self.text(most * 3)}).to_string()
    }

    fn reply(&mut self, effect: u64, prompt: u64) -> Input {
        let mut parts = vec![];
        if self.one_in(3) {
            parts.push(ReplyPart::Thinking(Thinking { text: self.text(300) }));
            parts.push(ReplyPart::Opaque(Opaque { dialect: "d".into(), text: "{\"s\":1}".into() }));
        }
        if self.one_in(2) {
            let most = if self.one_in(20) { 8_000 } else { 200 };
            parts.push(said(&self.text(most)));
        }
        if !self.one_in(6) {
            (0..=self.below(5)).for_each(|_| parts.push(self.call()));
        }
        let usage = match self.below(4) {
            0 => None,
            1 => Some(Usage { input: self.below(prompt * 2 + 1), output: 10, ..Usage::default() }),
            _ => Some(Usage { input: prompt * 9 / 10, output: 10, ..Usage::default() }),
        };
        let complete = !self.one_in(20);
        let finish = if complete { Finish::Stop } else { Finish::Interrupted };
        Input::Reply(Reply { usage, complete, finish, ..reply(effect, parts) })
    }

    fn result(&mut self, effect: u64) -> Input {
        let most = match self.below(80) {
            0 if self.one_in(self.rarely) => 10_000_000,
            0 | 1 => 60_000,
            _ => [40, 400, 2_000][self.below(3) as usize],
        };
        let mut result = if self.one_in(5) { error("exception", &self.text(200)) } else { good(&self.text(most)) };
        if self.one_in(30) {
            result.parts.push(image());
        }
        Input::Result(ToolEnd { effect, result, spent: None })
    }

    fn signal(&mut self) -> Input {
        let urgency = if self.one_in(4) { Urgency::High } else { Urgency::Normal };
        let most = if self.one_in(4) { 30_000 } else { 40 };
        signal(&format!("news {}", self.text(most).replace('\n', " ")), urgency, None)
    }

    fn goal(&mut self) -> Input {
        let most = if self.one_in(10) { 20_000 } else { 200 };
        let mut goal = vec![text(&format!("Goal: {}", self.text(most)))];
        if self.one_in(20) {
            goal.push(image());
        }
        let feedback = if self.one_in(8) { vec![self.text(200)] } else { vec![] };
        Input::Start(Start { goal, config: self.config(), criteria: vec![], feedback })
    }

    fn step(&mut self, world: &World) -> Input {
        let effects = world.kernel.pending(None);
        let prompt = world.kernel.state().prompt().tokens();
        if effects.is_empty() || self.one_in(60) {
            return self.goal();
        }
        match self.below(40) {
            0 | 1 => return self.signal(),
            2 => return interrupt(),
            4 => return together(&["news", "mail", "news"], true),
            5 => return user_says("Mind the gap."),
            3 => return resume_with(self.config()),
            _ => {}
        }
        match &effects[self.below(effects.len() as u64) as usize] {
            Effect::CallModel(call) if self.one_in(25) => overflow(call),
            Effect::CallModel(call) => self.reply(call.id, prompt),
            Effect::RunTool(run) if self.one_in(20) => suspends(run.id),
            Effect::RunTool(run) => self.result(run.id),
            Effect::AskUser(ask) => value(ask.id, "1"),
            Effect::Summarize(asked) if self.one_in(3) => summary(asked.id, ""),
            Effect::Summarize(asked) => summary(asked.id, &self.text(asked.room)),
        }
    }
}

fn image() -> Part {
    Part::Image(Image { media_type: "image/png".into(), data: "aGk=".repeat(300), url: String::new() })
}

fn overflow(call: &CallModel) -> Input {
    let fault = Fault { code: "context_overflow".into(), message: "too long".into(), retryable: false };
    Input::Failure(Failure { effect: call.id, fault })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Steps in one session; its log is folded anew a few times.
const SESSION: u64 = 250;

#[test]
fn whatever_comes_the_request_fits_calls_are_paired_and_the_turns_tell_the_state() {
    let steps = number("PROPTEST_CASES", 96) * 10_000 / 96;
    let seed = number("PROPTEST_RNG_SEED", 20_261_130);
    let (mut rewrites, mut too_long) = (0, 0);
    for session in 0..steps.min(1_000_000) / SESSION {
        let placement = if session % 6 == 5 { Placement::Live } else { Placement::Frozen };
        let state = (seed ^ (session + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut dice = Dice { state, placement, rarely: if steps > 10_000 { 40 } else { 4 } };
        let mut world = World::new();
        world.every = 83;
        for _ in 0..SESSION {
            if dice.one_in(200) {
                world.crash();
            }
            let input = dice.step(&world);
            // Many signals may come before the model is asked again.
            for _ in 0..if dice.one_in(300) { 200 } else { 0 } {
                let storm = dice.signal();
                let _ = world.give(storm);
            }
            // A suspended tool cannot ask again, a completed goal not be resumed: such an input changes nothing.
            let Ok(events) = world.give(input) else { continue };
            rewrites += events.iter().filter(|event| event.tag() == "compressed").count();
            too_long += events.iter().filter(|event| is_too_long(event)).count();
            if dice.one_in(50) {
                world.later(400_000);
            }
        }
    }
    assert!(rewrites > steps as usize / 100, "seed {seed}: {rewrites} rewrites, {too_long} goals that did not fit");
}

fn is_too_long(event: &Event) -> bool {
    matches!(event, Event::Ended(ended) if ended.status == Status::Error
        && ended.fault.as_ref().is_some_and(|fault| fault.code == "context_overflow"))
}
