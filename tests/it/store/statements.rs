//! Splits a migration into statements for the rules that check migrations. Each statement is one
//! line, in lower case, without comments.

const EXCEPTION: &str = "-- exception: ";
/// The first words of the statements that the rules examine.
const VERBS: &[&str] = &["alter", "call", "create", "drop", "execute", "revoke"];
/// A statement in a DO block can follow these words without a semicolon.
const BEFORE_STATEMENTS: &[&str] = &["begin", "then", "else", "loop"];

/// A statement, and whether a comment marks it as an exception.
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) is_excepted: bool,
}

/// Returns the statements of a migration. Dollar-quoted texts are included only if they belong to a
/// DO block, which runs at once; functions run later.
pub(super) fn statements(sql: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut text, mut is_excepted) = (String::new(), false);
    for (at, part) in sql.split("$$").enumerate() {
        if at % 2 == 1 {
            if text.split_whitespace().next() == Some("do") {
                found.extend(statements(part).into_iter().map(Statement::of_block));
            }
            continue;
        }
        for line in part.lines() {
            let (code, comment) = line.split_once("--").unwrap_or((line, ""));
            let reason = comment.trim().strip_prefix(EXCEPTION.trim_start_matches('-').trim());
            is_excepted |= reason.is_some_and(|reason| reason.trim().len() >= 20);
            let mut pieces = code.split(';').peekable();
            while let Some(piece) = pieces.next() {
                text.push_str(&piece.to_lowercase());
                text.push(' ');
                if pieces.peek().is_some() {
                    let words: Vec<_> = text.split_whitespace().collect();
                    found.push(Statement { text: words.join(" "), is_excepted });
                    (text, is_excepted) = (String::new(), false);
                }
            }
        }
    }
    found.retain(|statement| !statement.text.is_empty() && statement.text != "do");
    found
}

impl Statement {
    /// Removes the words before the statement, such as `if … then`, and takes the statement out of
    /// an EXECUTE.
    fn of_block(self) -> Self {
        let words: Vec<_> = self.text.split(' ').collect();
        let begins = |at: &usize| {
            VERBS.contains(&words[*at]) && (*at == 0 || BEFORE_STATEMENTS.contains(&words[at - 1]))
        };
        let text = match (0..words.len()).find(begins) {
            Some(at) => words[at..].join(" "),
            None => self.text,
        };
        let run = text.strip_prefix("execute ").map(|run| run.trim_start_matches("format("));
        let text = run.map_or(text.as_str(), |run| run.trim_start_matches('\'')).to_owned();
        Self { text, ..self }
    }
}

/// Returns the parts that are separated by commas outside parentheses.
pub(super) fn clauses(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0;
    for letter in text.chars() {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(letter);
        }
    }
    found.iter().map(|clause| clause.trim().to_owned()).collect()
}

/// Returns the name after `before`, without quotes or schema, up to a space, quote or parenthesis.
pub(super) fn named<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let rest = text.split_once(before)?.1.trim_start();
    let rest = ["if not exists ", "if exists ", "only "]
        .iter()
        .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let name = rest.split([' ', '(', ')', '\'']).next()?;
    Some(name.trim_start_matches("public.").trim_matches('"'))
}
