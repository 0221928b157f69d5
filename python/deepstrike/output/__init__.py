"""Answers in a form: what form, how the model is asked for it, and whether an answer has it."""
