"""What documents say: words, keys, dates, links, titles and passages."""
