use super::*;
use proptest::prelude::*;

/// `web.shop.svc.cluster.local A`, asked with room for 1232 bytes.
fn asked(name: &str, kind: u16, options: bool) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(options)];
    write_name(&mut bytes, name);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(CLASS.to_be_bytes());
    if options {
        bytes.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }
    bytes
}

fn many(count: u8) -> Answer {
    let records =
        (0..count).map(|n| Record { name: None, data: Data::A(Ipv4Addr::new(10, 244, 0, n)) }).collect();
    Answer { code: Code::Known, records, authority: Vec::new(), additional: Vec::new() }
}

#[test]
fn a_question_is_read_and_sent_back_as_it_was() {
    let bytes = asked("WeB.shop.svc.cluster.local", kind::A, true);
    let query = parse(&bytes).unwrap();
    assert_eq!(query.labels.join("."), "web.shop.svc.cluster.local");
    assert_eq!((query.id, query.kind, query.class, query.datagram), (0xabcd, kind::A, CLASS, Some(1232)));
    let answer = query.answer(&many(1), 5, true);
    assert_eq!(answer[..4], [0xab, 0xcd, 0x85, 0]);
    assert_eq!(answer[12..12 + query.question.len()], bytes[12..12 + query.question.len()], "WeB, not web");
    assert_eq!(
        &answer[12 + query.question.len()..][..16],
        [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 244, 0, 0]
    );
}

#[test]
fn what_does_not_fit_is_left_out_and_said_to_be() {
    for (options, room) in [(false, 512), (true, 1232)] {
        let query = parse(&asked("web.shop.svc.cluster.local", kind::A, options)).unwrap();
        let cut = query.answer(&many(200), 5, true);
        assert!(cut.len() <= room && cut.len() > room - 32, "{}", cut.len());
        assert_eq!(cut[2] & 0x02, 0x02, "truncated");
        let whole = query.answer(&many(200), 5, false);
        assert_eq!((whole[2] & 0x02, whole[7]), (0, 200));
    }
}

#[test]
fn what_is_no_question_is_answered_shortly_or_not() {
    assert_eq!(parse(&[]), Err(None));
    assert_eq!(parse(&[0; 11]), Err(None));
    let mut answer = asked("a", kind::A, false);
    answer[2] |= 0x80;
    assert_eq!(parse(&answer), Err(None), "answers are never answered: two servers would go on for ever");
    let mut update = asked("a", kind::A, false);
    update[2] |= 0x28;
    assert_eq!(parse(&update).unwrap_err().unwrap()[3], Code::NotDone as u8);
    let mut two = asked("a", kind::A, false);
    two[5] = 2;
    assert_eq!(parse(&two).unwrap_err().unwrap()[3], Code::Format as u8);
    let mut pointing = asked("a", kind::A, false);
    pointing[12] = 0xc0;
    assert_eq!(parse(&pointing).unwrap_err().unwrap()[3], Code::Format as u8);
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), as_question in any::<bool>()) {
        if as_question && bytes.len() > 12 {
            bytes[2] &= 0x07;
            bytes[4..6].copy_from_slice(&[0, 1]);
        }
        if let Ok(query) = parse(&bytes) {
            prop_assert!(query.question.len() <= bytes.len());
            prop_assert!(query.answer(&many(255), 5, true).len() <= LARGEST);
        }
    }

    #[test]
    fn a_damaged_question_is_no_worse(at in 0usize..60, to in any::<u8>(), keep in 0usize..70) {
        let mut bytes = asked("web.shop.svc.cluster.local", kind::SRV, true);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = to;
        }
        bytes.truncate(keep);
        if let Ok(query) = parse(&bytes) {
            prop_assert!(query.labels.iter().map(|label| label.chars().count() + 1).sum::<usize>() <= 255);
        }
    }

    #[test]
    fn names_of_any_text_can_be_written(name in ".{0,400}") {
        let mut bytes = Vec::new();
        write_name(&mut bytes, &name);
        prop_assert!(bytes.len() <= 255, "{}", bytes.len());
        prop_assert!(labels(&bytes, 0).is_some());
    }
}
