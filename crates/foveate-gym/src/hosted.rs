//! Environments of the program that Foveate runs in: of a Python interpreter, which makes and steps them in threads of its own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::PREFIX;
use crate::gym::Gym;

/// Makes copies of an environment in this process, and serves each from a thread of its own.
pub trait Host: Send + Sync {
    /// Serves a new copy until `control` is closed, with the program that is sent through `control`, as a worker process does.
    /// `memory` is the file for observations. Both are descriptors, which it closes.
    ///
    /// # Errors
    /// When no thread can be started.
    fn serve(&self, control: i32, memory: i32) -> Result<(), String>;
}

/// An environment of this program, which has a name as long as this value exists.
pub(crate) struct Hosted {
    id: String,
    host: Arc<dyn Host>,
    /// Kept until then, so that copies serve one job after the other.
    kept: Mutex<Vec<Arc<Gym>>>,
}

static ALL: Mutex<Vec<(String, HostedHandle)>> = Mutex::new(Vec::new());

/// A handle to an environment of this program; two are equal if it is the same.
#[derive(Clone)]
pub struct HostedHandle(Arc<Hosted>);

impl PartialEq for HostedHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for HostedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostedHandle").field(&self.0.id).finish()
    }
}

impl HostedHandle {
    pub(crate) fn host(&self) -> &dyn Host {
        &*self.0.host
    }

    /// Keeps the environment and its idle copies until the name is given up.
    pub fn keep(&self, gym: &Arc<Gym>) {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(gym));
    }
}

/// The name of an environment of this program; gives it up when it is dropped.
#[derive(Debug)]
pub struct HostedName(String);

impl HostedName {
    /// The world's name, such as `gym:own/CartPole-v1`.
    pub fn world(&self) -> String {
        format!("{PREFIX}{}", self.0)
    }
}

impl Drop for HostedName {
    fn drop(&mut self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|(id, _)| *id == self.0).map(|i| all.swap_remove(i));
        drop(all);
        // Copies end outside of the lock.
        if let Some((_, HostedHandle(hosted))) = found {
            hosted.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

/// Gives an environment of this program a name that no other has now, from `name`.
pub fn host(name: &str, host: Arc<dyn Host>) -> HostedName {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let plain = format!("own/{name}");
    let (mut id, mut number) = (plain.clone(), 2);
    while all.iter().any(|(other, _)| *other == id) {
        id = format!("{plain}/{number}");
        number += 1;
    }
    all.push((id.clone(), HostedHandle(Arc::new(Hosted { id: id.clone(), host, kept: Mutex::default() }))));
    HostedName(id)
}

/// The environment of this program with this id, if there is one.
pub fn hosted(id: &str) -> Option<HostedHandle> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(known, _)| known == id).map(|(_, hosted)| hosted.clone())
}
