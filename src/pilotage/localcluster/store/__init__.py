"""Storage of whole objects with revisions and a watch log. Pure: time and ids are arguments."""
