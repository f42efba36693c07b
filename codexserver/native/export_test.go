package native

// UserAgent is userAgent.
func (e *Engine) UserAgent() string { return e.userAgent() }
