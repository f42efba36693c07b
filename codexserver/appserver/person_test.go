package appserver_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestReviewer starts and resumes threads with each reviewer, where the configuration and a trusted call have a model decide.
func TestReviewer(t *testing.T) {
	for reviewer, want := range map[setting.Reviewer]string{
		"": "[<nil> auto_review <nil>]", setting.ReviewerCodex: "[<nil> auto_review <nil>]", setting.ReviewerPerson: "[user user user]",
	} {
		inBubble(t, string(reviewer), func(t *testing.T, f *fake) {
			f.config, f.turn = map[string]any{"approvals_reviewer": "auto_review"}, answered
			sent := f.keep("thread/start", "thread/resume")
			e := f.engine(appserver.Options{Codex: setting.Codex{Reviewer: reviewer}})
			cfg := protocol.Config{Overrides: raw("approvals_reviewer", `"auto_review"`)}
			conv := must.Get(e.Start(t.Context(), cfg, &recorder{}))(t)
			must.Get(e.Resume(t.Context(), savedAt(writeRollout(t)), cfg, &recorder{}))(t)
			f.runs[0].cancel() // the next turn resumes the thread in a new process
			synctest.Wait()
			must.OK(t, conv.Turn(t.Context(), text("go")))
			var got []any
			for _, params := range *sent {
				got = append(got, loose(t, params).(map[string]any)["approvalsReviewer"])
			}
			must.Equal(t, "sent", want, fmt.Sprint(got))
		})
	}
}

// TestAnotherReviewer has a Codex in which a model reviews whatever it is told. If a person is to, no turn begins.
func TestAnotherReviewer(t *testing.T) {
	const words = `a person is to decide about approvals, and codex says that "auto_review" would`
	for _, method := range []string{"thread/start", "thread/resume"} {
		inBubble(t, method, func(t *testing.T, f *fake) {
			f.turn = answered
			f.on[method] = reply(fmt.Sprintf(`{"thread":{"id":%q},"cwd":"/work","approvalPolicy":"on-request","approvalsReviewer":"auto_review","sandbox":{"type":"readOnly"}}`, threadID))
			e := f.engine(appserver.Options{Codex: setting.Codex{Reviewer: setting.ReviewerPerson}})
			conv, err := e.Start(t.Context(), protocol.Config{}, &recorder{})
			if method == "thread/start" {
				must.Fail(t, "Start", words, err)
				return
			}
			must.OK(t, err)
			_, err = e.Resume(t.Context(), savedAt(writeRollout(t)), protocol.Config{}, &recorder{})
			must.Fail(t, "Resume", words, err)
			f.runs[0].cancel()
			synctest.Wait()
			must.Fail(t, "Turn", words, conv.Turn(t.Context(), text("go")))
		})
	}
}
