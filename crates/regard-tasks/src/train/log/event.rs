//! TensorBoard's `Event` message, in the wire format of protocol buffers.
//!
//! ```text
//! Event      { double wall_time = 1; int64 step = 2; string file_version = 3;
//!              Summary summary = 5; SessionLog session_log = 7; }
//! Summary    { repeated Value value = 1; }     Value { string tag = 1; float simple_value = 2; }
//! SessionLog { SessionStatus status = 1; }     START = 1
//! ```

/// Wire type of a field.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire: Wire) {
        self.number(field << 3 | wire as u64);
    }

    /// Appends a varint: seven bits per byte, lowest first, with a continuation bit.
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn varint(mut self, field: u64, value: u64) -> Message {
        self.key(field, Wire::Varint);
        self.number(value);
        self
    }

    fn double(mut self, field: u64, value: f64) -> Message {
        self.key(field, Wire::Fixed64);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn float(mut self, field: u64, value: f32) -> Message {
        self.key(field, Wire::Fixed32);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Message {
        self.key(field, Wire::Bytes);
        self.number(value.len() as u64);
        self.0.extend(value);
        self
    }
}

/// Builds the first event of a file, which names the format.
pub(super) fn file_version(wall_time: f64) -> Vec<u8> {
    Message::default().double(1, wall_time).bytes(3, b"brain.Event:2").0
}

/// Builds the event of a restart at a step: readers discard that step and later ones of older
/// files.
pub(super) fn session_start(wall_time: f64, step: u64) -> Vec<u8> {
    let start = Message::default().varint(1, 1);
    Message::default().double(1, wall_time).varint(2, step).bytes(7, &start.0).0
}

/// Builds the event with the values of a step, in single precision as TensorBoard keeps them.
pub(super) fn scalars(wall_time: f64, step: u64, values: &[(&str, f64)]) -> Vec<u8> {
    let mut summary = Message::default();
    for (tag, value) in values {
        let value = Message::default().bytes(1, tag.as_bytes()).float(2, *value as f32);
        summary = summary.bytes(1, &value.0);
    }
    Message::default().double(1, wall_time).varint(2, step).bytes(5, &summary.0).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_protobuf() {
        // Written out by the Python package: Event(wall_time=1.5, …).SerializeToString().
        let check = |found: Vec<u8>, expected: &str| {
            let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected);
        };
        check(file_version(1.5), "09000000000000f83f1a0d627261696e2e4576656e743a32");
        check(session_start(1.5, 7), "09000000000000f83f10073a020801");
        check(
            scalars(1.5, 300, &[("loss", 0.25), ("é", -1.0)]),
            "09000000000000f83f10ac022a180a0b0a046c6f7373150000803e0a090a02c3a915000080bf",
        );
    }
}
