package main

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// Without tasks the questions come in results, and the answers with the call's
// retries.

func inRounds(s *stage, turns ...providertest.Turn) {
	s.env = append(s.env, "CLAUDE_CODE_DISABLE_MCP_TASKS=1")
	s.delegates(s.task("do what is asked"))
	s.codex.Add(turns...)
	s.start()
	s.says("delegate it")
}

func roundsAccept(s *stage) {
	inRounds(s, touch("made")...)
	s.accepts(asksToTouch("made"))
	s.hears("Codex ends:")
	s.made("made", true)
	s.wire(wire.modern, has(1, "rounds", rounds), has(2, "calls", sent("tools/call")), answers(1, "accept"))
}

func roundsDecline(s *stage) {
	inRounds(s, touch("made")...)
	s.declines(asksToTouch("made"))
	s.hears("Codex ends:", "declined")
	s.made("made", false)
	s.wire(wire.modern, has(1, "rounds", rounds), has(2, "calls", sent("tools/call")), answers(1, "decline"))
}

func roundsEscape(s *stage) {
	inRounds(s, touch("made")...)
	s.sees(asksToTouch("made"))
	s.leaves(asksToTouch("made"), "Escape")
	s.hears("aborted")
	s.made("made", false)
	s.wire(wire.modern, has(1, "rounds", rounds), has(2, "calls", sent("tools/call")), answers(1, "cancel"))
}

// roundsInterrupt presses Escape while the command runs.
func roundsInterrupt(s *stage) {
	inRounds(s, sleep)
	s.accepts("Allow Codex to run")
	pid := s.process()
	s.press("Escape")
	s.ends(pid)
	s.wire(wire.modern, answers(1, "accept"), has(1, "cancellations", sent("notifications/cancelled")))
}

// roundsTwelve needs more rounds than a call has: it is answered before they
// are over, and the model waits for the rest by another call.
func roundsTwelve(s *stage) {
	s.claude.script(line{heard: `"status":"waiting"`, waits: true})
	inRounds(s, touchTwelve()...)
	s.acceptsTwelve()
	s.wire(wire.modern, has(twelve, "rounds", rounds), answers(twelve, "accept"))
}

// roundsSecrets has a command print its environment: Claude Code passes all of its own to
// the server, with the key.
func roundsSecrets(s *stage) {
	inRounds(s, providertest.Call(providertest.Shell("call_env", "sh", "-c", "env; touch made")), touch("made")[1])
	s.accepts("Allow Codex to run")
	told := s.hears("Codex ends:", "PATH=")
	s.made("made", true)
	for _, secret := range []string{"ANTHROPIC_API_KEY", key, "CLAUDE_CODE_MESSAGING_TOKEN"} {
		if strings.Contains(told, secret) {
			s.fail("the command had %s:\n%s", secret, told)
		}
	}
	s.wire(wire.modern)
}
