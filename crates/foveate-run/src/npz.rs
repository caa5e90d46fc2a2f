//! A bounded reader for NumPy's npz.
