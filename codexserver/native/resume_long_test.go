//go:build !race

package native_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestResumeLong resumes a conversation whose history is too long to be read: the model gets
// the end, the user's words of the rest and a remark, and the user is told.
func TestResumeLong(t *testing.T) {
	t.Parallel()
	b := setup(t, `model_context_window = 40_000`+"\n", native.Limits{}, providertest.Say("first answer"), providertest.Say("second answer"))
	h := &host{}
	c := b.start(t, h, protocol.Config{})
	turn(t, c, say("first question"))
	path := configured(t, h).RolloutPath
	closed(t, c)
	var rest strings.Builder
	output := strings.Repeat("a lot of output ", 2000)
	for i := range 700 {
		call, message := fmt.Sprintf("call_%d", i), fmt.Sprintf("question %d", i)
		for _, line := range []string{
			`"event_msg","payload":{"type":"user_message","message":"` + message + output + `"}`,
			`"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + message + `"}]}`,
			`"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"` + call + `"}`,
			`"response_item","payload":{"type":"function_call_output","call_id":"` + call + `","output":"` + output + `"}`,
		} {
			fmt.Fprintf(&rest, `{"timestamp":"2025-09-30T10:11:12.000Z","type":%s}`+"\n", line)
		}
	}
	appendTo(t, path, rest.String())
	b.reopen(t)
	h = &host{}
	c = b.resume(t, path, protocol.Config{}, h)
	past := configured(t, h).InitialMessages
	if first := string(past[0]); !strings.Contains(first, "older events are left out") || len(past) > 500 {
		t.Errorf("%d events of the past, the first is %.200s", len(past), first)
	}
	turn(t, c, say("last question"))
	closed(t, c)
	request := lastRequest(b)
	if most := 40_000 * 4; len(request) > most {
		t.Errorf("the request has %d bytes, and the model reads at most about %d", len(request), most)
	}
	inOrder(t, request, "first question", "question 0", "question 600", "items are left out", "question 699", "call_699", "a lot of output", "last question")
	validRequests(t, b.provider)
	inOrder(t, strings.Join(h.news(), "\n"), "items are left out")
}
