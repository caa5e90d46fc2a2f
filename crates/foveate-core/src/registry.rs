//! Registries: lists of descriptors that are found by name.
//!
//! A [`Registry`] is the single list of all worlds, agents, learners or shifts: a static slice of
//! descriptors, followed by those that a program registers at start. Help, tables, completions, tests and the
//! lab read this list; no other code refers to the names.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::near;

/// A descriptor with a unique name.
pub trait Descriptor: Sync {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// Returns whether `given` refers to this descriptor: by default when it is [`Descriptor::name`]; a descriptor
    /// for a family of names overrides this.
    fn matches(&self, given: &str) -> bool {
        given == self.name()
    }
}

/// A list of descriptors that can be extended at run time.
///
/// ```
/// use foveate_core::{Descriptor, Registry};
///
/// struct Fruit { name: &'static str, color: &'static str }
/// impl Descriptor for Fruit {
///     fn name(&self) -> &'static str { self.name }
/// }
///
/// static CHERRY: Fruit = Fruit { name: "cherry", color: "red" };
/// static FRUITS: Registry<Fruit> = Registry::new("fruit", &[&CHERRY]);
///
/// FRUITS.register(Fruit { name: "banana", color: "yellow" })?;
/// assert_eq!(FRUITS.find("banana")?.color, "yellow");
/// assert_eq!(FRUITS.names(), ["cherry", "banana"]);
/// let said = FRUITS.find("chery").map(|_| ()).unwrap_err().to_string();
/// assert_eq!(said, "no fruit is called \"chery\"; did you mean cherry? choose from: cherry, banana");
/// # Ok::<(), foveate_core::RegistryError>(())
/// ```
pub struct Registry<D: 'static> {
    what: &'static str,
    fixed: &'static [&'static D],
    added: RwLock<Vec<&'static D>>,
}

impl<D: Descriptor> Registry<D> {
    /// A registry of `fixed`; `what` is the noun for one entry in messages.
    pub const fn new(what: &'static str, fixed: &'static [&'static D]) -> Self {
        Registry { what, fixed, added: RwLock::new(Vec::new()) }
    }

    /// All descriptors: the fixed ones in their order, then the registered ones in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &'static D> + use<D> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.fixed.iter().copied().chain(added)
    }

    /// All names, in the order of [`Registry::iter`].
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(Descriptor::name).collect()
    }

    /// The descriptor for `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<&'static D> {
        self.iter().find(|descriptor| descriptor.matches(name))
    }

    /// The descriptor for `name`.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`], which lists the known names.
    pub fn find(&self, name: &str) -> Result<&'static D, RegistryError> {
        self.get(name).ok_or_else(|| RegistryError::Unknown {
            what: self.what,
            given: name.to_owned(),
            known: self.names().join(", "),
        })
    }

    /// Adds a descriptor for the rest of the program's run.
    ///
    /// # Errors
    /// [`RegistryError::Taken`] when the registry already has a descriptor for this name;
    /// [`RegistryError::BadName`] when the name is empty or contains white space, a control character or a
    /// comma.
    pub fn register(&self, descriptor: D) -> Result<&'static D, RegistryError> {
        let name = descriptor.name();
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control() || c == ',') {
            return Err(RegistryError::BadName { what: self.what, given: name.to_owned() });
        }
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        if self.fixed.iter().chain(&*added).any(|known| known.matches(name)) {
            return Err(RegistryError::Taken { what: self.what, name: name.to_owned() });
        }
        let descriptor: &'static D = Box::leak(Box::new(descriptor));
        added.push(descriptor);
        Ok(descriptor)
    }
}

impl<D: Descriptor> fmt::Debug for Registry<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("what", &self.what)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}

/// Errors of a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No entry has this name.
    #[error("no {what} is called {given:?};{} choose from: {known}", near::hint(given, known))]
    Unknown {
        /// The noun for an entry, such as `agent`.
        what: &'static str,
        /// The name that was given.
        given: String,
        /// All names.
        known: String,
    },
    /// The name is taken by another entry.
    #[error("there is already one {what} called {name:?}; register it under another name")]
    Taken {
        /// The noun for an entry.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The name is invalid.
    #[error("{given:?} is no name for a {what}; use letters, digits and hyphens")]
    BadName {
        /// The noun for an entry.
        what: &'static str,
        /// Its name.
        given: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Descriptor for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn matches(&self, given: &str) -> bool {
            match self.0.strip_suffix("ID") {
                Some(prefix) => given.starts_with(prefix),
                None => given == self.0,
            }
        }
    }

    static ONE: Named = Named("one");
    static FAMILY: Named = Named("family:ID");
    static FIXED: [&Named; 2] = [&ONE, &FAMILY];

    #[test]
    fn what_was_added_is_found_like_what_was_there() {
        let registry = Registry::new("thing", &FIXED);
        registry.register(Named("two")).expect("a new name");
        for (given, expect) in [
            ("one", Some("one")),
            ("two", Some("two")),
            ("family:anything", Some("family:ID")),
            ("three", None),
            ("", None),
        ] {
            assert_eq!(registry.get(given).map(Descriptor::name), expect, "{given:?}");
        }
        assert_eq!(registry.names(), ["one", "family:ID", "two"]);
        assert_eq!(
            registry.find("tow").err().expect("unknown").to_string(),
            "no thing is called \"tow\"; did you mean two? choose from: one, family:ID, two"
        );
    }

    #[test]
    fn a_name_is_taken_once() {
        let registry = Registry::new("thing", &FIXED);
        for (name, words) in [
            ("one", "already one thing called \"one\""),
            ("family:x", "already one thing called \"family:x\""),
            ("", "\"\" is no name for a thing"),
            ("a b", "\"a b\" is no name"),
            ("a,b", "\"a,b\" is no name"),
        ] {
            let said = registry.register(Named(name)).err().expect("refused").to_string();
            assert!(said.contains(words), "{said}");
        }
        registry.register(Named("two")).expect("new");
        assert!(registry.register(Named("two")).is_err(), "what was added counts, too");
        assert_eq!(registry.names().len(), 3, "nothing else was added");
    }

    #[test]
    fn threads_may_register_at_the_same_time() {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        static SHARED: Registry<Named> = Registry::new("thing", &[]);
        let added: usize = std::thread::scope(|scope| {
            let register = || NAMES.iter().filter(|&&name| SHARED.register(Named(name)).is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(register)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((added, SHARED.names().len()), (8, 8), "each name once, by whichever thread");
    }
}
