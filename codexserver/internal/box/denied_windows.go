package box

// hasAccess returns true: this system does not answer the question.
func hasAccess(string) bool { return true }
