//! Weight files: safetensors with the whole configuration inside.
