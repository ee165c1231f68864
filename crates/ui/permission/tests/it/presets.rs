//! The table.

use permission::*;

use crate::support::*;

fn presets(names: &[&str]) -> Result<Presets, PresetsError> {
    Presets::new(names.iter().map(|name| Preset::new(*name, ReadOnly, Ask)).collect())
}

#[test]
fn the_default_table() {
    let table: Vec<_> = Presets::default().iter().cloned().collect();
    let want = [
        Preset { name: "read-only".into(), sandbox: ReadOnly, approval: Ask },
        Preset { name: "workspace-write".into(), sandbox: WorkspaceWrite, approval: Ask },
        Preset { name: "danger-full-access".into(), sandbox: DangerFullAccess, approval: Never },
    ];
    assert_eq!(table, want);
    assert_eq!(Presets::new(table).unwrap(), Presets::default(), "it keeps its own rules");
}

#[test]
fn a_table_keeps_its_order_and_finds_by_the_whole_name() {
    let table = presets(&["careful", "b", "a", "2nd_choice-3"]).unwrap();
    assert_eq!(table.names().collect::<Vec<_>>(), ["careful", "b", "a", "2nd_choice-3"]);
    assert_eq!((&table).into_iter().count(), 4);
    assert_eq!(&*table.get("a").unwrap().name, "a");
    for other in ["", "care", "Careful", "careful ", "custom"] {
        assert_eq!(table.get(other), None, "{other:?}");
    }
}

#[test]
fn what_is_no_table_is_refused_and_told_why() {
    let long = "a".repeat(65);
    presets(&[&long[..64]]).unwrap();
    let no_word = |shown: &str| {
        format!(
            "`{shown}` does not name a permission preset: use at most 64 ASCII letters, digits, `-` and `_`, beginning \
             with a letter or a digit"
        )
    };
    let cases: [(&[&str], String); 13] = [
        (&[], "there are no permission presets: name at least one".into()),
        (&[""], no_word("")),
        (&["two words"], no_word("two words")),
        (&["-a"], no_word("-a")),
        (&["_a"], no_word("_a")),
        (&["a.b"], no_word("a.b")),
        (&["a\n\u{1b}[2K"], no_word(r"a\n\u{1b}[2K")),
        (&["é"], no_word("é")),
        (&[&long], no_word(&long[..64])),
        (
            &["a", "custom"],
            "no permission preset can be named `custom`: it is shown where none fits; use another name".into(),
        ),
        (
            &["Custom"],
            "no permission preset can be named `Custom`: it is shown where none fits; use another name".into(),
        ),
        (&["a", "b", "a"], "there are two permission presets named `a`: give each a name of its own".into()),
        (&["a", "a"], "there are two permission presets named `a`: give each a name of its own".into()),
    ];
    for (names, want) in cases {
        assert_eq!(presets(names).unwrap_err().to_string(), want, "{names:?}");
    }
}
