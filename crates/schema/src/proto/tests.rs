//! Messages of a type that has a field of every kind.

use super::{Field, Kind, Messages, Shape, decode, encode, frame_head, item_head, list_ends, open};
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
enum Type {
    Is(Kind<'static, Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

impl Shape for Type {
    fn kind(&self) -> Kind<'_, Self> {
        match self {
            Self::Is(kind) => *kind,
            Self::List(item) => Kind::List(item),
            Self::Map(value) => Kind::Map(value),
        }
    }

    fn is_optional(&self) -> bool {
        matches!(self, Self::Is(Kind::Message(_) | Kind::Float))
    }
}

struct Table(Vec<Field<Type>>, Vec<Field<Type>>);

impl Messages for Table {
    type Shape = Type;

    fn fields(&self, message: &str) -> Option<&[Field<Type>]> {
        match message {
            "All" => Some(&self.0),
            "Inner" => Some(&self.1),
            _ => None,
        }
    }

    fn schema(&self) -> &str {
        "Inner"
    }
}

fn table() -> Table {
    let field = |number, name: &str, shape| Field {
        number,
        name: name.to_owned(),
        inline: false,
        wrapped: false,
        shape,
    };
    let kinds = [
        ("text", Kind::Text),
        ("bool", Kind::Bool),
        ("int32", Kind::Int { bits: 32, signed: true }),
        ("uint32", Kind::Int { bits: 32, signed: false }),
        ("float", Kind::Float),
        ("bytes", Kind::Bytes),
        ("time", Kind::Time),
        ("micro", Kind::MicroTime),
        ("quantity", Kind::Quantity),
        ("either", Kind::IntOrString),
        ("json", Kind::Json),
        ("array", Kind::SchemaOrArray),
        ("allowed", Kind::SchemaOrBool),
        ("strings", Kind::SchemaOrStrings),
        ("inner", Kind::Message("Inner")),
    ];
    let mut all: Vec<_> =
        (1..).zip(kinds).map(|(number, (name, kind))| field(number, name, Type::Is(kind))).collect();
    let number = || Type::Is(Kind::Int { bits: 64, signed: true });
    all.push(field(16, "numbers", Type::List(Box::new(number()))));
    all.push(field(17, "lists", Type::Map(Box::new(Type::List(Box::new(Type::Is(Kind::Text)))))));
    all.push(field(18, "amounts", Type::Map(Box::new(Type::Is(Kind::Quantity)))));
    let spread = Type::Is(Kind::Message("Inner"));
    all.push(Field { number: 19, name: "Spread".to_owned(), inline: true, wrapped: false, shape: spread });
    let words = Type::List(Box::new(Type::Is(Kind::Text)));
    all.push(Field { number: 20, name: "words".to_owned(), inline: false, wrapped: true, shape: words });
    let inner = vec![
        field(1, "a", Type::Is(Kind::Text)),
        field(2, "inner", Type::Is(Kind::Message("Inner"))),
        field(3, "lists", Type::Map(Box::new(Type::Is(Kind::SchemaOrArray)))),
    ];
    Table(all, inner)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

#[track_caller]
fn reads(message: &[Vec<u8>], expected: Value) {
    assert_eq!(decode(&table(), "All", &message.concat()), Ok(expected));
}

#[track_caller]
fn refuses(message: &[u8], why: &str) {
    assert_eq!(decode(&table(), "All", message).expect_err("refused").to_string(), why);
}

#[test]
fn scalars_are_what_json_has() {
    reads(
        &[bytes(1, "é"), number(2, 7), number(3, -1), number(4, -1), bytes(6, [0, 255])],
        json!({"text": "é", "bool": true, "int32": -1, "uint32": u32::MAX, "bytes": "AP8="}),
    );
    reads(
        &[vec![5 << 3 | 1], 2.5_f64.to_le_bytes().to_vec(), number(3, 1 << 40 | 5)],
        json!({"float": 2.5, "int32": 5}),
    );
    reads(&[bytes(1, [b'a', 0xff])], json!({"text": "a\u{fffd}"}));
}

#[test]
fn times_quantities_and_their_like_are_one_value() {
    reads(
        &[
            bytes(7, [number(1, 1_767_225_600), number(2, 999_999_999)].concat()),
            bytes(8, [number(1, 1_767_225_600), number(2, 123_456_789)].concat()),
            bytes(9, bytes(1, "500m")),
            bytes(10, [number(1, 1), bytes(3, "50%")].concat()),
            bytes(11, bytes(1, r#"{"x": [1, 1.5]}"#)),
        ],
        json!({
            "time": "2026-01-01T00:00:00Z", "micro": "2026-01-01T00:00:00.123456Z", "quantity": "500m",
            "either": "50%", "json": {"x": [1, 1.5]},
        }),
    );
    reads(
        &[bytes(7, ""), bytes(8, number(1, -62_135_596_800)), bytes(10, number(2, -80))],
        json!({"time": null, "micro": null, "either": -80}),
    );
}

#[test]
fn schemas_may_be_something_else() {
    let schema = || bytes(1, "x");
    reads(
        &[bytes(12, bytes(2, schema())), bytes(13, number(1, 1)), bytes(14, bytes(2, "p"))],
        json!({"array": [{"a": "x"}], "allowed": true, "strings": ["p"]}),
    );
    reads(
        &[bytes(12, bytes(1, schema())), bytes(13, bytes(2, schema())), bytes(14, bytes(1, schema()))],
        json!({"array": {"a": "x"}, "allowed": {"a": "x"}, "strings": {"a": "x"}}),
    );
}

#[test]
fn lists_and_maps_grow_and_messages_merge() {
    reads(
        &[number(16, 1), bytes(16, [varint(2), varint(300)].concat()), number(16, -4)],
        json!({"numbers": [1, 2, 300, -4]}),
    );
    reads(
        &[
            bytes(17, [bytes(1, "k"), bytes(2, [bytes(1, "a"), bytes(1, "b")].concat())].concat()),
            bytes(18, [bytes(1, "cpu"), bytes(2, bytes(1, "2"))].concat()),
            bytes(18, bytes(1, "memory")),
        ],
        json!({"lists": {"k": ["a", "b"]}, "amounts": {"cpu": "2", "memory": "0"}}),
    );
    reads(
        &[bytes(15, bytes(1, "x")), bytes(15, bytes(2, "")), bytes(19, bytes(1, "among ours"))],
        json!({"inner": {"a": "x", "inner": {}}, "a": "among ours"}),
    );
}

#[test]
fn what_is_not_known_is_skipped() {
    let group = [varint(99 << 3 | 3), vec![0x0b, 0x0c], number(1, 5), varint(99 << 3 | 4)].concat();
    reads(&[number(900, 1), bytes(901, "x"), group, bytes(1, "a")], json!({"text": "a"}));
}

#[test]
fn bytes_that_are_no_message_are_refused_with_the_reasons_of_the_reference() {
    refuses(&[0x0a, 5, b'a'], "unexpected EOF");
    refuses(&[0x80; 11], "proto: integer overflow");
    refuses(
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        "proto: negative length found during unmarshaling",
    );
    refuses(&number(1, 1), "proto: wrong wireType = 0 for field Text");
    refuses(&[0x0c], "proto: All: wiretype end group for non-group");
    refuses(&[0x02, 0], "proto: All: illegal tag 0 (wire type 2)");
    refuses(&[0x0e], "proto: wrong wireType = 6 for field Text");
    refuses(&[0xa6, 0x06], "proto: illegal wireType 6");
    refuses(&[vec![5 << 3 | 1], f64::NAN.to_le_bytes().to_vec()].concat(), "json: unsupported value: NaN");
}

#[test]
fn depth_and_size_are_bounded() {
    let mut deep = Vec::new();
    for _ in 0..300 {
        deep = bytes(2, deep);
    }
    refuses(&bytes(15, deep), "exceeded max depth");
    // The longest way from one message to the next; it must fit the stack of a thread.
    let nested = |depth| {
        (0..depth).fold(Vec::new(), |deep, _| bytes(3, [bytes(1, "k"), bytes(2, bytes(2, deep))].concat()))
    };
    refuses(&bytes(15, nested(250)), "exceeded max depth");
    refuses(&bytes(15, nested(98)), "exceeded max depth");
    let deep = decode(&table(), "All", &bytes(15, nested(84))).expect("as deep as JSON may be");
    assert!(crate::json::read(&crate::json::write(&deep)).is_ok());
    let long: Vec<u8> = [0x82, 0x01, 0].repeat(350_000);
    assert_eq!(decode(&table(), "All", &long).map(|value| value.to_string().len()), Ok(14));
    refuses(&bytes(16, vec![0; 1_000_001]), "more than 1000000 values");
}

#[test]
fn an_envelope_names_what_is_inside() {
    let meta = [bytes(1, "v1"), bytes(2, "Pod")].concat();
    let sealed = [b"k8s\0".to_vec(), bytes(1, meta), bytes(2, "raw"), bytes(4, "type")].concat();
    let envelope = open(&sealed).expect("an envelope");
    assert_eq!((&*envelope.api_version, &*envelope.kind, envelope.raw), ("v1", "Pod", &b"raw"[..]));
    for (bytes, why) in [
        (&b""[..], "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
    ] {
        assert_eq!(open(bytes).expect_err("refused").to_string(), why);
    }
}

proptest! {
    #[test]
    fn what_was_written_once_is_written_the_same_again(message in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = decode(&table(), "Inner", &message) {
            let write = |value: &Value| encode(&table(), "Inner", "v1", "Inner", value.to_string().as_bytes());
            let once = write(&value).expect("what was read has a form");
            let read = decode(&table(), "Inner", open(&once).expect("an envelope").raw).expect("a message");
            prop_assert_eq!(write(&read).expect("what was read has a form"), once);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(message in proptest::collection::vec(any::<u8>(), 0..200), tag in 1_u64..20) {
        let _ = decode(&table(), "All", &message);
        let _ = decode(&table(), "All", &bytes(tag, &message));
        let _ = open(&message);
    }
}

/// Written, opened and read again.
fn again(value: &Value) -> Value {
    let sealed = encode(&table(), "All", "v1", "All", value.to_string().as_bytes()).expect("it has a form");
    let envelope = open(&sealed).expect("an envelope");
    assert_eq!((&*envelope.api_version, &*envelope.kind), ("v1", "All"));
    decode(&table(), "All", envelope.raw).expect("a message")
}

#[test]
fn what_is_written_is_read_again() {
    let all = json!({
        "text": "é\n\"", "bool": true, "int32": -5, "uint32": 4_000_000_000_u32, "float": 2.5, "bytes": "AP8=",
        "time": "1969-12-31T23:59:58Z", "micro": "2026-01-01T00:00:00.123456Z", "quantity": "500m", "either": "50%",
        "json": {"x": [1, 1.5, null, true], "a<b": "\u{1}"}, "array": [{"a": "x", "lists": {"k": {"a": "y"}}}],
        "allowed": {"a": "x"}, "strings": ["p", "q"], "inner": {"a": "1", "inner": {"a": "2"}},
        "numbers": [1, -1, 300], "words": ["v", "w"], "amounts": {"cpu": "2"}, "a": "among ours",
    });
    assert_eq!(again(&all), all);
}

#[test]
fn what_is_not_there_is_written_as_gos_zero_value() {
    assert_eq!(
        again(&json!({"unknown": 1})),
        json!({
            "text": "", "bool": false, "int32": 0, "uint32": 0, "time": null, "micro": null, "quantity": "0", "either": 0,
            "json": null, "array": null, "allowed": false, "strings": null, "a": "",
        })
    );
}

#[test]
fn a_list_holds_messages_and_a_frame_an_envelope() {
    let items: [&[u8]; 2] = [&bytes(1, "x"), &bytes(1, "y")];
    let sizes = items.iter().map(|item| item.len());
    let ends = list_ends(&table(), ("v1", "AllList"), ("Inner", r#"{"a":"7"}"#), sizes);
    let (head, tail) = ends.expect("it has a form");
    let items = items.map(|item| [&*item_head(item.len()), item].concat()).concat();
    let list = [head, items, tail].concat();
    let envelope = open(&list).expect("an envelope");
    assert_eq!(
        envelope.raw,
        [bytes(1, bytes(1, "7")), bytes(2, bytes(1, "x")), bytes(2, bytes(1, "y"))].concat()
    );
    let event = [bytes(1, "ADDED"), bytes(2, bytes(1, "abc"))].concat();
    let frame = [frame_head("ADDED", 3), b"abc".to_vec()].concat();
    assert_eq!(frame, [&[0, 0, 0, event.len() as u8], &*event].concat());
}

#[test]
fn long_messages_outgrow_the_first_guess() {
    let many = json!({"numbers": vec![1; 1000], "text": "x".repeat(1000)});
    let read = again(&many);
    assert_eq!(
        (read["numbers"].clone(), read["text"].clone()),
        (many["numbers"].clone(), many["text"].clone())
    );
}
