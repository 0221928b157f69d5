//! 10,000 tool turns: what one `accept` costs, how fast the log folds, what a turn retains.
//!
//! `cargo run --release -p deepstrike-kernel --example turns`
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a measurement stops at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use deepstrike_kernel::wire::effect::Effect;
use deepstrike_kernel::{Kernel, Millis, Tokens};

const TURNS: u32 = 10_000;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a sum of what is held.
struct Counting;

#[allow(unsafe_code, reason = "an allocator is unsafe by its nature; it only adds and passes on")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Quarters;

impl Tokens for Quarters {
    fn count(&self, _: &str, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }

    fn least(&self, _: &str, counted: u64) -> u64 {
        counted
    }
}

const START: &str = r#"{"type":"start","goal":[{"type":"text","text":"Add."}],"config":{"session":"s","system":"Be brief.","preload":[],"tools":[{"name":"add","description":"adds","parameters":"{}"}],"policy":{},"limits":{"max_turns":1000000,"window":1000000000,"reserve":1000,"parallel":8},"model":{"id":"m"}}}"#;

fn reply(effect: u64, turn: u32) -> String {
    let call = format!(
        r#"{{"type":"call","wire_id":"call_{turn}","name":"add","args_text":"{{\"a\":{turn},\"b\":28}}","validated":{{"type":"ok","text":"{{\"a\":{turn},\"b\":28}}"}}}}"#
    );
    let usage = r#"{"input":100,"output":10}"#;
    format!(
        r#"{{"type":"reply","effect":{effect},"parts":[{call}],"finish":"tool_calls","dialect":"openai","model":"m","usage":{usage}}}"#
    )
}

fn owed(kernel: &Kernel) -> u64 {
    kernel.pending(None).first().map(Effect::id).unwrap()
}

fn main() {
    let mut kernel = Kernel::new(Box::new(Quarters));
    let mut log = kernel.accept(START.as_bytes(), Millis(0)).unwrap();
    let before = HELD.load(Relaxed);
    let mut spent = 0.0;
    let mut bytes = 0;
    for turn in 0..TURNS {
        let from = log.len();
        let texts = [reply(owed(&kernel), turn), String::new()];
        for text in texts {
            let result = r#","result":{"parts":[{"type":"text","text":"45"}]}}"#;
            let text =
                if text.is_empty() { format!(r#"{{"type":"result","effect":{}{result}"#, owed(&kernel)) } else { text };
            let begun = Instant::now();
            let records = kernel.accept(text.as_bytes(), Millis(i64::from(turn))).unwrap();
            spent += begun.elapsed().as_secs_f64();
            log.extend(records);
        }
        bytes += log.iter().skip(from).map(|line| line.capacity()).sum::<usize>();
    }
    let lines = log.capacity() * size_of::<Vec<u8>>();
    let held = HELD.load(Relaxed) - before - bytes - lines;
    let text = kernel.blocks(kernel.epoch(), 0).len();
    let begun = Instant::now();
    let folded = Kernel::replay(Box::new(Quarters), log.iter().map(Vec::as_slice)).unwrap();
    let replay = begun.elapsed().as_secs_f64();
    assert_eq!(folded.state(), kernel.state());
    println!("accept          {:.2} µs", spent * 1e6 / f64::from(TURNS * 2));
    println!("fold            {:.0} records/s", log.len() as f64 / replay);
    println!("held per turn   {} bytes, {} of them text", held / TURNS as usize, text / TURNS as usize);
}
