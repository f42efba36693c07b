package page

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// FuzzAnswer posts any body as an answer. Either the body is accepted and returned byte for
// byte, or it is refused and the question stays open. An accepted body approves only if its
// action is accept and its decision is not a denial.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"action":"accept"}`,
		`{"action":"accept","content":{"decision":"approved_for_session"}}`,
		`{"action":"decline","content":{"feedback":"no"}}`,
		`{"action":"cancel","content":null}`,
		`{"action":"decline","action":"accept"}`,
		`{"Action":"accept"}`,
		"{\"action\":\"accept\"}\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := newPage("127.0.0.1:1", &Options{})
		token, _ := p.door.admit(p.door.invite())
		asked := request("1", "true")
		q, err := p.board.ask(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:1/questions/"+strconv.Itoa(q.ID), bytes.NewReader(sent))
		r.Header.Set("Origin", "http://127.0.0.1:1")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		p.serve(w, r)
		switch w.Code {
		case http.StatusNoContent:
			answer := <-q.answered
			if !bytes.Equal(answer, sent) {
				t.Errorf("returned %q", answer)
			}
			var plain struct {
				Action  string
				Content struct{ Decision string }
			}
			if err := json.Unmarshal(sent, &plain, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			says := plain.Action == "accept" && plain.Content.Decision != "denied" && plain.Content.Decision != "abort"
			d := asked.Question.Read(answer, nil).Decision
			if approves := d == elicit.Approved || d == elicit.ApprovedForSession; approves && !says {
				t.Errorf("%q was read as %s", sent, d)
			}
		case http.StatusBadRequest:
			if q.Question.State != stateOpen {
				t.Error("a refused answer has closed the question")
			}
		default:
			t.Errorf("status %d", w.Code)
		}
	})
}
