package sandbox

// hasAccess is not known here.
func hasAccess(string) bool { return true }
