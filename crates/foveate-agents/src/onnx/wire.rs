//! Protocol Buffers, as far as ONNX needs them: a message is its fields, one after the other.

/// The bytes of a message.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A field of a whole number.
    #[must_use]
    pub(super) fn int(mut self, field: u64, number: i64) -> Self {
        self.varint(field << 3);
        self.varint(number.cast_unsigned());
        self
    }

    /// A field of bytes, or of text.
    #[must_use]
    pub(super) fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A field of a message.
    #[must_use]
    pub(super) fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// A repeated field of whole numbers.
    #[must_use]
    pub(super) fn ints(self, field: u64, numbers: impl IntoIterator<Item = i64>) -> Self {
        numbers.into_iter().fold(self, |message, number| message.int(field, number))
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// Examples of the Protocol Buffers documentation, and numbers below 0.
    #[test]
    fn fields_are_encoded_as_documented() {
        assert_eq!(Message::default().int(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().bytes(2, "testing").0, b"\x12\x07testing");
        let inner = Message::default().int(1, 150);
        assert_eq!(Message::default().message(3, &inner).0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_one = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(Message::default().int(1, -1).0, minus_one);
        assert_eq!(Message::default().ints(8, [1, 2]).0, [0x40, 1, 0x40, 2]);
    }
}
