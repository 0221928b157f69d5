//! Which sentences of a user look like demands. It only ranks: where there is not room for all that the user said, those
//! leave last.

/// Words of a demand.
const DEMANDS: &[&str] = &[
    "must",
    "never",
    "always",
    "only",
    "not",
    "don't",
    "dont",
    "cannot",
    "can't",
    "without",
    "avoid",
    "prefer",
    "ensure",
    "require",
    "requires",
    "required",
    "should",
    "shall",
    "need",
    "needs",
    "no",
    "remember",
    "important",
    "limit",
    "budget",
    "deadline",
    "instead",
    "unless",
    "except",
    "keep",
    "make",
    "use",
    "want",
    "please",
    "nicht",
    "nie",
    "immer",
    "nur",
    "kein",
    "keine",
    "muss",
    "müssen",
    "soll",
    "bitte",
    "ohne",
    "jamais",
    "toujours",
    "doit",
    "sans",
    "nunca",
    "siempre",
    "debe",
    "sin",
    "solo",
];

/// The same in scripts that do not part words by spaces.
const SIGNS: &[&str] =
    &["必须", "不要", "不能", "禁止", "务必", "只能", "请", "一定", "ない", "必ず", "してください", "마세요", "반드시"];

/// Bytes of a text that are looked through.
const LOOKED_THROUGH: usize = 64 * 1024;

/// Whether there is a demand in a text.
pub(super) fn is_demand(text: &str) -> bool {
    let text = text.split_at(text.floor_char_boundary(LOOKED_THROUGH)).0;
    let mut words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '\'' || letter == '’'));
    words.any(|word| DEMANDS.contains(&word.to_lowercase().replace('’', "'").as_str()))
        || SIGNS.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::is_demand;

    #[test]
    fn demands_are_told_from_other_sentences() {
        let demands = ["You must not fly.", "Please don’t.", "也不要靠窗。", "Bitte ohne Fleisch."];
        let others = ["My name is Mia Li.", "That works for me, thanks."];
        assert_eq!((demands.map(is_demand), others.map(is_demand)), ([true; 4], [false; 2]));
    }
}
