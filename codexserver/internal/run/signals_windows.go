package run

// withSignals calls start: processes of this system inherit nothing of signals.
func withSignals(start func() error) error { return start() }
