"""What searching texts is made of: words, ranks, vectors, and the SQLite file that they are kept in."""
