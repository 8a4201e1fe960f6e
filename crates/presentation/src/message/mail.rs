//! Messages as the text of an e-mail.

use super::text::MessageText;

/// The text of an e-mail, with a line break after each line. A URL is on a line of its own.
pub fn mail_body(text: &MessageText) -> String {
    let lines = text.lines.iter().map(|(label, value)| format!("{label}: {value}\n"));
    let lines: String = lines.collect();
    format!("{}\n\n{lines}\n{}:\n{}\n", text.heading, text.link_text, text.link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_has_the_lines_and_the_link() {
        let text = MessageText::test("https://authority.example.org/console/messages");
        let expected = "Test message\n\nChannel: Messages about approvals arrive here.\n\n\
                        Open the channels:\nhttps://authority.example.org/console/messages\n";
        assert_eq!(mail_body(&text), expected);
    }
}
