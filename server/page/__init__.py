"""Reports as one page of HTML that needs no network and no scripts: its plots, its template and its style."""
