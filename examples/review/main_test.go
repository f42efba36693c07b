package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestReview reviews a branch of a repository, with a scripted model.
func TestReview(t *testing.T) {
	repo := topic(t)
	finding := func(file string, line int) string {
		return fmt.Sprintf(`{"title":"division by @everyone","body":"b may be 0.\n`+"````"+`\n![x](https://example.com)","priority":1,"confidence_score":0.9,
			"code_location":{"absolute_file_path":%q,"line_range":{"start":%d,"end":%d}}}`, filepath.Join(repo, file), line, line)
	}
	c := exampletest.Connect(t, providertest.Say(`{"findings":[`+finding("a.txt", 2)+","+finding("elsewhere.txt", 2)+`],
		"overall_correctness":"patch is incorrect","overall_explanation":"One fault.","overall_confidence_score":0.9}`))
	var out strings.Builder
	must.OK(t, run(t.Context(), c, repo, "main", &out))
	want := "A model reviewed this. Check what it says before you act on it.\n\n`````text\n" +
		"P1 a.txt:2 division by @everyone\n    b may be 0.\n    ````\n    ![x](https://example.com)\nOne fault.\n`````\n"
	must.Equal(t, "result", want, out.String())
}

// TestFailedReview checks that a review without a result leaves no comment, and the exit status.
func TestFailedReview(t *testing.T) {
	for want, turns := range map[int][]providertest.Turn{1: {providertest.Say("It looks fine.")}, 3: nil} {
		var out strings.Builder
		err := run(t.Context(), exampletest.Connect(t, turns...), topic(t), "main", &out)
		if err == nil || out.Len() > 0 || status(t.Context(), err) != want {
			t.Errorf("error %v, comment %q, want the exit status %d", err, out.String(), want)
		}
	}
}

func TestLongComment(t *testing.T) {
	for size, cut := range map[int]bool{60_000: false, 60_001: true} {
		text := comment(&client.Result{TurnResult: protocol.TurnResult{Verdict: &protocol.Verdict{Explanation: strings.Repeat("x", size-1)}}}) // and the end of the line
		if strings.HasSuffix(text, "The review is longer.\n") != cut || cut && strings.Count(text, "x\n```") != 1 {
			t.Errorf("%d bytes are cut: …%q", size, text[len(text)-50:])
		}
	}
	text := comment(&client.Result{TurnResult: protocol.TurnResult{Verdict: &protocol.Verdict{Explanation: strings.Repeat("é", 60_000)}}})
	if len(text) > 60_000+200 || !strings.HasSuffix(text, "é\n```\nThe review is longer.\n") {
		t.Errorf("%d bytes, the end is %q", len(text), text[len(text)-50:])
	}
}

// topic makes a repository whose branch topic adds a line to a.txt.
func topic(t *testing.T) string {
	t.Helper()
	dir := exampletest.Repository(t)
	exampletest.Git(t, dir, "checkout", "-q", "-b", "topic")
	exampletest.Write(t, dir, "a.txt", "one\ntwo\n")
	exampletest.Git(t, dir, "commit", "-qam", "change")
	return dir
}
