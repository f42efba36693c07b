package elicit

// A Decision is what the client decided about one question, or what a Policy decided when
// the client did not. All values but ApprovedAlways are those of Codex's own protocol.
type Decision string

const (
	// Approved allows what was asked, once.
	Approved Decision = "approved"
	// ApprovedForSession allows it now, and again without a question until the session
	// ends.
	ApprovedForSession Decision = "approved_for_session"
	// ApprovedAlways allows it now, and what a lasting rule says: the one in
	// Question.Always. It exists only for questions that offer it.
	ApprovedAlways Decision = "approved_always"
	// Denied refuses it; the turn continues and the model may try another way.
	Denied Decision = "denied"
	// Abort refuses it and ends the turn.
	Abort Decision = "abort"
)

// Valid reports whether d is one of the decisions. The zero Decision is
// not valid; treat it as Denied.
func (d Decision) Valid() bool { return d.rank() > 0 }

// Approves reports whether d allows what was asked.
func (d Decision) Approves() bool {
	return d == Approved || d == ApprovedForSession || d == ApprovedAlways
}

// rank orders the decisions from the least to the most restrictive.
func (d Decision) rank() int {
	switch d {
	case ApprovedAlways:
		return 1
	case ApprovedForSession:
		return 2
	case Approved:
		return 3
	case Denied:
		return 4
	case Abort:
		return 5
	}
	return 0
}

// Stricter reports whether d is more restrictive than other. Of two answers to one question
// whose order is not known, the stricter one counts.
func (d Decision) Stricter(other Decision) bool { return d.rank() > other.rank() }
