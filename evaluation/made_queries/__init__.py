"""Makes queries of the kinds that people type from the documents themselves (feature E3, phase A).

Each query is judged by construction: it asks for something that these documents contain and no others do, so no person
has to read and judge. `kinds` lists the kinds.
"""
