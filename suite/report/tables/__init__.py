"""A run as tables of words, the same for the terminal, Markdown and HTML: which rows and columns, not how they look."""
