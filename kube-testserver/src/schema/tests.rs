//! The tables in themselves; compared with the schemas of k8s-openapi in [`published`].

mod published;

use super::*;

fn names(ty: &Type) -> Vec<&'static str> {
    match ty {
        Type::Message(name) => vec![name],
        Type::List(inner) | Type::Map(inner) => names(inner),
        _ => vec![],
    }
}

#[test]
fn every_message_that_is_named_exists() {
    for message in SCHEMA.messages.values() {
        for name in message.fields.iter().flat_map(|field| names(&field.ty)) {
            assert!(super::message(name).is_some(), "{name} in {}", message.name);
        }
    }
    for name in SCHEMA.kinds.values() {
        assert!(message(name).is_some(), "{name}");
    }
}

#[test]
fn numbers_and_members_are_unique_in_a_message() {
    for message in SCHEMA.messages.values() {
        let mut numbers: Vec<_> = message.fields.iter().map(|field| field.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), message.fields.len(), "{}", message.name);
        let mut json: Vec<_> = members(message).into_iter().map(|field| field.json).collect();
        let all = json.len();
        json.sort_unstable();
        json.dedup();
        assert_eq!(json.len(), all, "{}", message.name);
    }
}

#[test]
fn map_keys_are_members_of_the_items() {
    for message in SCHEMA.messages.values() {
        for field in &message.fields {
            let (ListKind::Map(keys), Type::List(item)) = (&field.list, &field.ty) else {
                continue;
            };
            let Type::Message(item) = item.as_ref() else { continue };
            for key in keys {
                let item = super::message(item).unwrap();
                assert!(member(item, key.name).is_some(), "{} of {}", key.name, field.json);
            }
        }
    }
}

#[test]
fn inlined_members_are_found() {
    let volume = message("Volume").unwrap();
    assert_eq!(member(volume, "configMap").unwrap().number, 19);
}

#[test]
fn what_cannot_be_read_is_named() {
    let read =
        |text| table::paragraphs(text).into_iter().filter_map(Result::err).collect::<Vec<_>>();
    for (text, problem) in [
        ("Kind metadata=1 ObjectMeta", "no colon in `Kind metadata=1 ObjectMeta`"),
        ("kind: a=1 str", "`kind` is no name of a message"),
        ("Kind whole: a=1 str", "`Kind whole` is no message"),
        ("Kind: a str", "Kind: `a str` has no number"),
        ("Kind: a=one str", "Kind: `a=one str` has a number that is none"),
        ("Kind: a=1", "Kind: `a=1` has no type"),
        ("Kind: a=1 string", "Kind: `a=1 string` has no type"),
        ("Kind: a=1 [str", "Kind: `a=1 [str` has no type"),
        ("Kind: a=1 str ?", "Kind: `a=1 str ?` has the unknown flag `?`"),
        ("Kind: a=1 [str] keys(a)", "Kind: `a=1 [str] keys(a)` has the unknown flag `keys(a)`"),
    ] {
        assert_eq!(read(text), [problem]);
    }
    assert_eq!(read("Kind: a=1 str;\n  b=2 {[Other]} *"), [""; 0]);
}
