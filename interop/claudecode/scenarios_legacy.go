package main

// In the legacy era the server asks by a request.

func inLegacy(s *stage) {
	s.env = append(s.env, "MCP_PROTOCOL_NEGOTIATION=legacy")
	s.delegates(s.task("make the file"))
	s.codex.Add(touch("made")...)
	s.start()
	s.says("delegate it")
}

func legacyAccept(s *stage) {
	inLegacy(s)
	s.accepts(asksToTouch("made"))
	s.hears("Codex ends:")
	s.made("made", true)
	s.wire(wire.legacy, has(1, "questions", asked))
}

func legacyDecline(s *stage) {
	inLegacy(s)
	s.declines(asksToTouch("made"))
	s.hears("Codex ends:", "declined")
	s.made("made", false)
	s.wire(wire.legacy, has(1, "questions", asked))
}

func asked(m message) bool { return m.fromServer && m.Method == "elicitation/create" }
