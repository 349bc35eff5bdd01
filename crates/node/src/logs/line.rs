//! One line of a log file.

use jiff::Timestamp;

/// `TIME STREAM TAG TEXT`, without the newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) time: &'a str,
    /// Does the text end a line?
    pub(super) whole: bool,
    pub(super) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// None for what no runtime writes.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |&byte| byte == b' ');
        let time = std::str::from_utf8(fields.next()?).ok()?;
        let stream = fields.next()?;
        // More tags may follow, after colons.
        let tag = fields.next()?.split(|&byte| byte == b':').next()?;
        let text = fields.next().unwrap_or_default();
        let known = matches!(stream, b"stdout" | b"stderr") && matches!(tag, b"P" | b"F");
        (known && time.len() >= 20).then_some(Self { time, whole: tag == b"F", text })
    }

    /// Was it written at `since` or later? What has no time that can be read was.
    pub(super) fn is_since(&self, since: Timestamp) -> bool {
        self.time.parse::<Timestamp>().map_or(true, |time| time >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_a_stream_a_tag_and_a_text() {
        let line = Line::parse(b"2026-11-15T10:00:00.123456789Z stdout F two  words ").unwrap();
        assert_eq!(line.time, "2026-11-15T10:00:00.123456789Z");
        assert!(line.whole);
        assert_eq!(line.text, b"two  words ");
        assert!(!Line::parse(b"2026-11-15T10:00:00.1Z stderr P part").unwrap().whole);
        assert_eq!(Line::parse(b"2026-11-15T10:00:00.1Z stdout F ").unwrap().text, b"");
        assert_eq!(Line::parse(b"2026-11-15T10:00:00.1Z stdout F").unwrap().text, b"");
    }

    #[test]
    fn what_is_no_such_line_is_none() {
        for text in
            ["", " ", "hello", "2026-11-15T10:00:00.1Z stdin F x", "2026-11-15T10:00:00.1Z stdout X x"]
        {
            assert_eq!(Line::parse(text.as_bytes()), None, "{text}");
        }
    }
}
