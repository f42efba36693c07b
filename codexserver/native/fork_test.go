package native_test

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestFork copies a conversation while another server runs a turn of it, up to an earlier
// prompt. The original does not change.
func TestFork(t *testing.T) {
	stall := make(chan struct{})
	b := setup(t, "", native.Limits{}, providertest.Say("one"), providertest.Say("two"),
		providertest.Turn{Text: []string{"three"}, Stall: stall}, providertest.Say("copied"))
	t.Cleanup(func() { close(stall) })
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	for _, words := range []string{"first question", "second question"} {
		turn(t, c, say(words))
	}
	path := configured(t, h).RolloutPath
	go func() { _ = c.Turn(t.Context(), say("third question")) }()
	if err := b.provider.Await(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f engine.Resumer = b.engine
	to := &host{}
	copied, err := f.Fork(t.Context(), path, protocol.Config{}, to)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	// The third question and the second are taken back.
	in := say("another question")
	in.Rollback = 2
	turn(t, copied, in)
	requests := b.provider.Requests()
	body := string(requests[len(requests)-1].Body)
	for words, want := range map[string]bool{"first question": true, "second question": false, "third question": false, "another question": true} {
		if strings.Contains(body, words) != want {
			t.Errorf("%q is in the request: %t", words, !want)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("the original has changed: %v", err)
	}
	if copied.ID() == c.ID() {
		t.Error("the copy has the id of the original")
	}
	raw, err := os.ReadFile(configured(t, to).RolloutPath)
	if err != nil || !strings.Contains(strings.SplitN(string(raw), "\n", 2)[0], `"forked_from_id":"`+c.ID()+`"`) {
		t.Errorf("%v, the first line of the copy: %.300s", err, raw)
	}
}
