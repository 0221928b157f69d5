//! Short forms of inputs.

use deepstrike_kernel::wire::agents::Agents;
use deepstrike_kernel::wire::event::{Event, Status};
use deepstrike_kernel::wire::input::{
    Answer, AnswerBody, Approve, Clock, Deny, Failure, Fault, Finish, Input, Interrupt, Notify, Reply,
    Result as ToolEnd, Resume, SetPolicy, Start, Summary, Suspend, Value,
};
use deepstrike_kernel::wire::message::{
    CallPart, Class, Err, Ok, Part, ReplyPart, Text, ToolResult, ToolSpec, Usage, Validated,
};
use deepstrike_kernel::wire::policy::{Attended, Config, Limits, Model, Policy, Price};
use deepstrike_kernel::wire::signal::{Signal, Urgency};

pub fn tool(name: &str, effect: Class) -> ToolSpec {
    ToolSpec { name: name.into(), description: format!("does {name}"), parameters: "{}".into(), effect, agent: false }
}

/// Tools `write` (once), `put` (idempotent) and `look` (read); wide limits; nobody attends to questions.
pub fn config() -> Config {
    Config {
        session: "s".into(),
        system: "Be brief.".into(),
        preload: vec![],
        tools: vec![tool("write", Class::Once), tool("put", Class::Idempotent), tool("look", Class::Read)],
        policy: Policy::default(),
        limits: limits(),
        model: Model { id: "m".into(), price: None, cache_ms: 300_000 },
        placement: Default::default(),
        attended: Attended::default(),
        agents: Agents::default(),
        sources: Default::default(),
        summaries: false,
    }
}

pub fn limits() -> Limits {
    Limits {
        max_turns: 25,
        window: 100_000,
        reserve: 1_000,
        parallel: 8,
        max_total_tokens: None,
        max_cost: None,
        timeout_ms: None,
    }
}

pub fn limited(change: impl FnOnce(&mut Limits)) -> Config {
    let mut config = config();
    change(&mut config.limits);
    config
}

/// A start under a policy.
pub fn governed(change: impl FnOnce(&mut Policy)) -> Input {
    let mut config = config();
    change(&mut config.policy);
    start_with(config)
}

pub fn attended() -> Config {
    Config { attended: Attended { approvals: true, suspensions: true }, ..config() }
}

/// A dollar for a million tokens in, two out, ten cents cached.
pub fn priced(max_cost: u64) -> Config {
    let mut config = limited(|limits| limits.max_cost = Some(max_cost));
    config.model.price = Some(dollar());
    config
}

pub fn dollar() -> Price {
    Price { input: 1_000_000, output: 2_000_000, cached: 100_000, cache_write: 1_250_000 }
}

pub fn text(text: &str) -> Part {
    Part::Text(Text { text: text.into() })
}

pub fn start() -> Input {
    start_with(config())
}

pub fn start_with(config: Config) -> Input {
    Input::Start(Start { goal: vec![text("Do it.")], config, criteria: vec![], feedback: vec![] })
}

pub fn goal(goal: &str) -> Input {
    Input::Start(Start { goal: vec![text(goal)], config: config(), criteria: vec![], feedback: vec![] })
}

pub fn resume() -> Input {
    resume_with(config())
}

pub fn resume_with(config: Config) -> Input {
    Input::Resume(Resume { config })
}

pub fn said(text: &str) -> ReplyPart {
    ReplyPart::Text(Text { text: text.into() })
}

pub fn call(name: &str) -> ReplyPart {
    call_as("", name, "{}")
}

pub fn call_as(wire_id: &str, name: &str, args: &str) -> ReplyPart {
    ReplyPart::Call(CallPart {
        wire_id: wire_id.into(),
        name: name.into(),
        args_text: args.into(),
        validated: Validated::Ok(Ok { text: None }),
    })
}

pub fn bad_call(name: &str) -> ReplyPart {
    ReplyPart::Call(CallPart {
        wire_id: String::new(),
        name: name.into(),
        args_text: "{\"a\":".into(),
        validated: invalid("invalid_arguments", "a is missing"),
    })
}

pub fn invalid(kind: &str, message: &str) -> Validated {
    Validated::Err(Err { kind: kind.into(), message: message.into() })
}

pub fn reply(effect: u64, parts: Vec<ReplyPart>) -> Reply {
    Reply {
        effect,
        parts,
        finish: Finish::Stop,
        dialect: String::new(),
        model: String::new(),
        usage: Some(Usage { input: 100, output: 10, ..Usage::default() }),
        complete: true,
        output: None,
        fault: None,
        notices: vec![],
        price: None,
    }
}

pub fn replies(effect: u64, parts: Vec<ReplyPart>) -> Input {
    Input::Reply(reply(effect, parts))
}

pub fn shown(effect: u64, text: &str, fault: Option<Fault>) -> Input {
    let parts = if text.is_empty() { vec![] } else { vec![said(text)] };
    Input::Reply(Reply { complete: false, finish: Finish::Interrupted, usage: None, fault, ..reply(effect, parts) })
}

pub fn fault(code: &str) -> Fault {
    Fault { code: code.into(), message: format!("it is {code}"), retryable: true }
}

pub fn fails(effect: u64, code: &str) -> Input {
    Input::Failure(Failure { effect, fault: fault(code) })
}

pub fn good(content: &str) -> ToolResult {
    ToolResult { parts: vec![text(content)], error_kind: String::new(), blob: None }
}

pub fn error(kind: &str, content: &str) -> ToolResult {
    ToolResult { error_kind: kind.into(), ..good(content) }
}

pub fn result(effect: u64, content: &str) -> Input {
    Input::Result(ToolEnd { effect, result: good(content), spent: None })
}

pub fn suspends(effect: u64) -> Input {
    Input::Suspend(Suspend { effect, payload: "{\"which\":1}".into() })
}

pub fn value(effect: u64, json: &str) -> Input {
    Input::Answer(Answer { effect, answer: AnswerBody::Value(Value { json: json.into() }) })
}

pub fn approve(effect: u64) -> Input {
    approve_with(effect, None)
}

pub fn approve_with(effect: u64, arguments: Option<Validated>) -> Input {
    Input::Answer(Answer { effect, answer: AnswerBody::Approve(Approve { arguments }) })
}

pub fn deny(effect: u64) -> Input {
    Input::Answer(Answer { effect, answer: AnswerBody::Deny(Deny { reason: "not today".into() }) })
}

pub fn signal(kind: &str, urgency: Urgency, dedupe_key: Option<&str>) -> Input {
    Input::Notify(Notify {
        signal: Signal {
            kind: kind.into(),
            payload: "{}".into(),
            source: "custom".into(),
            signal_type: "event".into(),
            urgency,
            dedupe_key: dedupe_key.map(Into::into),
            id: None,
            from_user: false,
        },
        more: vec![],
        renews: false,
    })
}

fn plain_signal(kind: &str) -> Signal {
    let Input::Notify(notify) = signal(kind, Urgency::Normal, None) else { panic!() };
    notify.signal
}

/// Signals that arrive at once.
pub fn together(kinds: &[&str], renews: bool) -> Input {
    let mut signals = kinds.iter().map(|kind| plain_signal(kind));
    Input::Notify(Notify { signal: signals.next().unwrap(), more: signals.collect(), renews })
}

/// A delivery by name.
pub fn delivery(id: &str) -> Input {
    let signal = Signal { id: Some(id.into()), ..plain_signal("news") };
    Input::Notify(Notify { signal, more: vec![], renews: false })
}

/// A signal with a payload of so many bytes.
pub fn heavy(kind: &str, bytes: usize) -> Input {
    let signal = Signal { payload: format!("\"{}\"", "x".repeat(bytes)), ..plain_signal(kind) };
    Input::Notify(Notify { signal, more: vec![], renews: false })
}

/// What the user says while the run goes on.
pub fn user_says(text: &str) -> Input {
    let signal = Signal {
        payload: serde_json::json!({ "text": text }).to_string(),
        urgency: Urgency::High,
        from_user: true,
        ..plain_signal("message")
    };
    Input::Notify(Notify { signal, more: vec![], renews: false })
}

pub fn set_policy() -> Input {
    Input::SetPolicy(SetPolicy { policy: Policy::default() })
}

pub fn interrupt() -> Input {
    Input::Interrupt(Interrupt { reason: "enough".into() })
}

pub fn summary(effect: u64, text: &str) -> Input {
    Input::Summary(Summary { effect, text: text.into(), usage: Usage::default(), price: None, fault: None })
}

pub fn clock() -> Input {
    Input::Clock(Clock {})
}

/// The tags of events.
pub fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::tag).collect()
}

/// The error kind and the text of every Settled among the events.
pub fn settled(events: &[Event]) -> Vec<(String, String)> {
    let results = events.iter().filter_map(|event| match event {
        Event::Settled(settled) => Some(&settled.result),
        _ => None,
    });
    results.map(|result| (result.error_kind.clone(), content(&result.parts))).collect()
}

/// The texts of parts, joined.
pub fn content(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Status and code of the Ended among the events.
pub fn end(events: &[Event]) -> Option<(Status, String)> {
    events.iter().find_map(|event| match event {
        Event::Ended(ended) => Some((ended.status, ended.fault.clone().map(|fault| fault.code).unwrap_or_default())),
        _ => None,
    })
}
