//go:build unix

package main

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// startConnected is a launcher that starts codex-mcp http, and codex-mcp --connect for its
// client.
func startConnected(t *testing.T, f folders, args ...string) *process {
	t.Helper()
	unlocked := `http.unlocked_arguments=["approval-policy","config","profile","sandbox"]`
	s := serveIn(t, f, append(args, "-c", unlocked)...)
	p := start(t, f, "--connect", s.url+mcpPath)
	p.server = s.process
	return p
}

// wordsOfParser are the errors for invalid JSON, in which the proxy differs from the server.
var wordsOfParser = regexp.MustCompile(`("code":-32700,)"message":"[^"]*"`)

// TestEndToEndConnect runs transcripts of TestEndToEnd with --connect.
func TestEndToEndConnect(t *testing.T) {
	t.Parallel()
	eachRelayed(t, func(t *testing.T, _ string, a *txtar.Archive) {
		want, got := wordsOfParser.ReplaceAllString(section(a, "server"), "$1"), wordsOfParser.ReplaceAllString(playArchive(t, a, startConnected), "$1")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the server said (-want +got):\n%s", diff)
		}
	})
}

// TestEndToEndConnectEnds ends the client's connection in the middle of a turn.
func TestEndToEndConnectEnds(t *testing.T) {
	t.Parallel()
	endsInMidCommand(t, startConnected)
}

// TestEndToEndConnectedClientThatStopsReading runs alone: a program that another test starts meanwhile may
// keep the output open for the moment in which the server writes to it.
func TestEndToEndConnectedClientThatStopsReading(t *testing.T) { stopsReading(t, startConnected) }

// TestEndToEndConnectPage decides questions on the server's approval page.
func TestEndToEndConnectPage(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { pageAlone(t, startConnected) })
	t.Run("beside the client", func(t *testing.T) { pageAndClient(t, startConnected) })
}
