//! The integration tests of `foveate-agents`, in one program: it is linked once.

mod attention_agent;
mod attention_neuron_numbers;
mod attention_neuron_pictures;
mod batch;
#[path = "common/block.rs"]
mod block;
mod common;
mod fewer_patches;
mod gaze_student;
mod golden;
mod implicit_attention;
mod levels;
mod oracle_relational;
mod oracle_s3ta;
mod picture_student;
mod published;
mod student;
#[path = "common/synthetic.rs"]
mod synthetic;
#[path = "../../../foveate-kernels/tests/suite/spawned.rs"]
mod threads;
mod vector_student;
