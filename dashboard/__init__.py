"""The Streamlit pages on the tracker's read layer."""
