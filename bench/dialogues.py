"""Invented conversations with questions whose evidence is known, for measuring what a memory finds.

Two friends talk in sessions over a year. Each session is a row of exchanges about *matters* (a recital, a flat), each
belonging to one of the two. An exchange is one of four:

* told: one turn says what happened; it is the evidence
* asked: one asks about the matter by name, the other answers without naming it; the answer is the evidence
* drawn out: one hints at the matter, the other urges, the first tells without naming it; the last turn is the evidence
* idle: a matter is named and nothing is said about it: a distractor. There is one of them for each of the others

Of ten that tell something, six are told, three asked and one is drawn out.

A matter has a noun and something that tells it from others of its kind (the spring recital). A question asks for what
was told. With a chance of 40 % it has another noun than the conversation (paraphrase), so only the rest of its words
helps. Between exchanges stand turns of small talk that share the questions' commonest words. The values (dates,
places, sums, people) are drawn from lists that all matters share, so a value does not tell its matter. Everything
follows from the seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

MATTERS = [
    ("recital", "concert"), ("flat", "apartment"), ("visa", "residence permit"), ("interview", "job application"),
    ("marathon", "long race"), ("puppy", "young dog"), ("garden", "vegetable patch"), ("thesis", "dissertation"),
    ("wedding", "marriage ceremony"), ("surgery", "operation"), ("bike", "bicycle"), ("exhibition", "art show"),
    ("exam", "final test"), ("camping trip", "outdoor weekend"), ("pottery class", "ceramics course"),
    ("car", "vehicle"), ("choir", "singing group"), ("novel", "book manuscript"), ("allergy", "skin reaction"),
    ("roof", "top of the house"), ("promotion", "step up at work"), ("cottage", "holiday house"), ("tattoo", "ink"),
    ("violin", "instrument"), ("food bank", "charity work"), ("podcast", "audio show"), ("adoption", "new child"),
    ("laptop", "computer"), ("startup", "young company"), ("swimming lessons", "pool training"),
    ("kitchen", "cooking space"), ("loan", "credit"), ("reunion", "class meeting"), ("knee", "leg injury"),
    ("painting", "canvas"), ("chess club", "board game evenings"), ("sourdough", "bread baking"),
    ("telescope", "star gazing gear"), ("lawsuit", "court case"), ("migraine", "headaches"),
]  # fmt: skip
MARKS = [
    "spring", "old", "second", "Berlin", "family", "winter", "blue", "first", "northern", "shared",
]  # fmt: skip
VALUES = {
    "when": [
        "the third of May", "early October", "next Tuesday", "the week after Easter", "the nineteenth",
        "late August", "on a Friday in June", "right before Christmas", "the first of March", "some time in spring",
    ],
    "where": [
        "in Lisbon", "near the old harbour", "at my aunt's place", "in the school gym", "up in the hills",
        "downtown", "across the river", "in a barn outside Graz", "at the community centre", "on the third floor",
    ],
    "how much": [
        "four hundred euros", "almost two grand", "nothing in the end", "ninety a month", "twelve fifty",
        "half my pay", "seven thousand", "less than a coffee", "thirty each", "way over budget",
    ],
    "who": [
        "my cousin Ines", "old Mr Tanaka", "a woman called Petra", "the neighbour's son", "my former boss",
        "Doctor Amadi", "nobody I knew", "two students", "Grandma, believe it or not", "a friend of Luca's",
    ],
}  # fmt: skip
ASKS = {
    "when": [
        "When was {o}'s {m}?", "What time did {o} settle on for the {m}?", "Which date did {o} get for the {m}?",
    ],
    "where": [
        "Where was {o}'s {m}?", "In which place did {o} have the {m}?", "Where did {o} go for the {m}?",
    ],
    "how much": [
        "How much did {o} pay for the {m}?", "What did the {m} cost {o}?", "How much money went into {o}'s {m}?",
    ],
    "who": [
        "Who helped {o} with the {m}?", "Which person was with {o} for the {m}?", "Who did {o} meet about the {m}?",
    ],
}  # fmt: skip
TOLD = {
    "when": [
        "So the {m} is set: {v}.", "They moved my {m}, it's {v} now.", "Finally a date for the {m}, {v}.",
    ],
    "where": [
        "The {m} thing was {v}, lovely spot.", "We ended up doing the {m} {v}.", "Found it at last, the {m} is {v}.",
    ],
    "how much": [
        "The {m} came to {v}.", "I paid {v} for the {m}, can you imagine.", "All in all the {m}: {v}.",
    ],
    "who": [
        "Guess who showed up for the {m}: {v}.", "I did the {m} with {v}.", "{v} helped me with the {m}.",
    ],
}  # fmt: skip
QUERIES = [
    "How is the {m} coming along?", "Any news on your {m}?", "And the {m}, tell me?", "What about the {m}?",
]  # fmt: skip
HINTS = [
    "You won't believe the thing with the {m}.", "I must tell you about my {m}.", "Big news about the {m}!",
]  # fmt: skip
URGES = [
    "Oh, do tell!", "Go on.", "I'm all ears.", "Wait, what happened?",
]  # fmt: skip
ANSWERS = {
    "when": [
        "It's {v}, fixed now.", "{v}, if nothing comes between.", "They said {v}.",
    ],
    "where": [
        "It was {v} in the end.", "{v}, quite nice there.", "We settled for {v}.",
    ],
    "how much": [
        "{v}, would you believe it.", "It set me back {v}.", "Just {v}.",
    ],
    "who": [
        "With {v}, of all people.", "{v} came along.", "I had {v} there.",
    ],
}  # fmt: skip
IDLE = [
    "I keep thinking about the {m} lately.", "My sister has a {m} too, she is so happy.",
    "Don't get me started on the {m}.", "Everyone talks about their {m} these days.",
    "I dreamt of a {m} last night.", "The {m} again, sorry, I am tired.", "That film about a {m} was dull.",
    "A colleague sold his {m}.", "One more {m} and I go mad.", "The {m} can wait.",
]  # fmt: skip
SMALL = [
    "How was your day?", "It rained all morning.", "I should sleep more.", "Lunch was fine.", "Same as ever here.",
    "When did you get up?", "Who knows.", "Where does the time go?", "That is what I paid for, I guess.",
    "Ha, true.", "My phone is almost dead.", "I have to go soon.", "Let's meet some time.", "Did you see the match?",
    "Good question.", "The date slipped my mind.", "What a place.", "I met so many people this week.",
    "Money is tight.", "Sounds good.",
]  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """Something said in a session, `place` counted from 0."""

    session: int
    place: int
    speaker: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question and the turns, as (session, place), that answer it."""

    text: str
    evidence: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Dialogue:
    """All that two people said, and what can be asked about it."""

    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def dialogue(seed: int, sessions: int = 25, exchanges: int = 6) -> Dialogue:
    """A conversation of some 600 turns with one question for each exchange that tells something."""
    return _Writer(random.Random(seed)).written(sessions, exchanges)


class _Writer:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.names = dice.sample(["Mira", "Jonas", "Aisha", "Tomas", "Keiko", "Pavel", "Nadia", "Owen"], 2)
        self.turns: list[Turn] = []
        self.questions: list[Question] = []
        # Each matter, owner and kind of value is told once, so every question has one answer.
        told = [(matter, mark) for matter in range(len(MATTERS)) for mark in MARKS]
        self.untold = [(m, mark, o, kind) for m, mark in dice.sample(told, 120) for o in (0, 1) for kind in VALUES]
        dice.shuffle(self.untold)

    def written(self, sessions: int, exchanges: int) -> Dialogue:
        for session in range(sessions):
            kinds = ["telling"] * exchanges + ["idle"] * exchanges
            self.dice.shuffle(kinds)
            for kind in kinds:
                if self.dice.random() < 0.25:
                    self.say(session, self.dice.randrange(2), self.dice.choice(SMALL))
                if kind == "idle" or not self.untold:
                    self.idle(session)
                else:
                    self.telling(session, *self.untold.pop())
        return Dialogue(tuple(self.turns), tuple(self.questions))

    def say(self, session: int, who: int, text: str) -> tuple[int, int]:
        place = sum(1 for turn in self.turns if turn.session == session)
        self.turns.append(Turn(session, place, self.names[who], text[0].upper() + text[1:]))
        return session, place

    def idle(self, session: int) -> None:
        said = f"{self.dice.choice(MARKS)} {self.dice.choice(MATTERS)[0]}"
        who = self.dice.randrange(2)
        self.say(session, who, self.dice.choice(IDLE).format(m=said))
        if self.dice.random() < 0.6:
            self.say(session, 1 - who, self.dice.choice(SMALL))

    def telling(self, session: int, matter: int, mark: str, owner: int, kind: str) -> None:
        said, meant = (f"{mark} {noun}" for noun in MATTERS[matter])
        value = self.dice.choice(VALUES[kind])
        how = self.dice.choices(["told", "asked", "drawn out"], (6, 3, 1))[0]
        if how == "told":
            at = self.say(session, owner, self.dice.choice(TOLD[kind]).format(m=said, v=value))
        else:
            if how == "asked":
                self.say(session, 1 - owner, self.dice.choice(QUERIES).format(m=said))
            else:
                self.say(session, owner, self.dice.choice(HINTS).format(m=said))
                self.say(session, 1 - owner, self.dice.choice(URGES))
            at = self.say(session, owner, self.dice.choice(ANSWERS[kind]).format(v=value))
        name = meant if self.dice.random() < 0.4 else said
        text = self.dice.choice(ASKS[kind]).format(o=self.names[owner], m=name)
        self.questions.append(Question(text, frozenset({at})))
