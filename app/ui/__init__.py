"""The application in a browser, by Streamlit. Nothing here loads PyTorch: designs are made by worker processes."""
