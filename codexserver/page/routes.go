package page

import (
	"bytes"
	"embed"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

//go:embed web
var web embed.FS

// routes returns what answers a request whose Host was checked. The files are public and hold nothing of a
// conversation.
//
//	GET  /, /page.css, /page.js     the page, without a token
//	POST /session                   a link's secret for a token
//	GET  /events                    what the page shows, and its changes
//	POST /questions/{id}            an answer, an ElicitResult
//	POST /conversations/{id}/stop   interrupts the running turn
func (p *Page) routes() http.Handler {
	m := http.NewServeMux()
	for path, f := range map[string][2]string{
		"/{$}":      {"web/page.html", "text/html; charset=utf-8"},
		"/page.css": {"web/page.css", "text/css; charset=utf-8"},
		"/page.js":  {"web/page.js", "text/javascript; charset=utf-8"},
	} {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", f[1])
			http.ServeFileFS(w, r, web, f[0])
		})
	}
	m.HandleFunc("POST /session", p.own(p.admit))
	m.HandleFunc("GET /events", p.own(p.known(p.stream)))
	m.HandleFunc("POST /questions/{id}", p.own(p.known(p.answer)))
	m.HandleFunc("POST /conversations/{id}/stop", p.own(p.known(p.stop)))
	return m
}

func (p *Page) admit(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Secret string `json:"secret"`
	}
	if _, ok := readBody(w, r, &in); !ok {
		return
	}
	token, ok := p.door.admit(in.Secret)
	if !ok {
		refuse(w, http.StatusForbidden, "this link was used already, or is too old: open the page by a new link")
		return
	}
	p.crowd.isKnown(r)
	reply(w, http.StatusOK, map[string]string{"token": token})
}

// elicitResult is the shape of an answer that the page sends: MCP's
// ElicitResult with the content that package elicit knows.
type elicitResult struct {
	Action  string `json:"action"`
	Content *struct {
		Decision *string `json:"decision"`
		Feedback *string `json:"feedback"`
	} `json:"content"`
}

var (
	actions   = []string{"accept", "decline", "cancel"}
	decisions = []string{"approved", "approved_for_session", "approved_always", "denied", "abort"}
)

func (p *Page) answer(w http.ResponseWriter, r *http.Request, _ *session) {
	var in elicitResult
	raw, ok := readBody(w, r, &in)
	if !ok {
		return
	}
	if !slices.Contains(actions, in.Action) {
		refuse(w, http.StatusBadRequest, "/action must be one of %q", actions)
		return
	}
	if c := in.Content; c != nil && c.Decision != nil && !slices.Contains(decisions, *c.Decision) {
		refuse(w, http.StatusBadRequest, "/content/decision must be one of %q", decisions)
		return
	}
	switch end, found := p.board.answer(number(r), raw); {
	case !found:
		refuse(w, http.StatusNotFound, "there is no such question, or the page has removed it")
	case end != nil:
		reply(w, http.StatusConflict, end)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (p *Page) stop(w http.ResponseWriter, r *http.Request, _ *session) {
	if _, ok := readBody(w, r, &struct{}{}); !ok {
		return
	}
	if !p.board.stop(number(r)) {
		refuse(w, http.StatusNotFound, "there is no such conversation")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// number returns the id in the path of a request, one that nothing has if it is none.
func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.PathValue("id"))
	return n
}

// maxBody has room for the longest feedback, 2,000 characters, even if all are escaped.
const maxBody = 32 << 10

// readBody reads the body of a request: one JSON object whose members are all members of
// v, without duplicates. It refuses any other body and returns false.
func readBody(w http.ResponseWriter, r *http.Request, v any) ([]byte, bool) {
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusBadRequest, "the content type is not application/json")
		return nil, false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body could not be read, or is longer than %d bytes", maxBody)
		return nil, false
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		refuse(w, http.StatusBadRequest, "the body is not a JSON object")
		return nil, false
	}
	if err := json.Unmarshal(raw, v, json.RejectUnknownMembers(true)); err != nil {
		refuse(w, http.StatusBadRequest, "the body is wrong: %v", err)
		return nil, false
	}
	return raw, true
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the answer could not be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // whole once it is flushed
	w.WriteHeader(status)
	w.Write(text) // an error means that the browser has gone
}
