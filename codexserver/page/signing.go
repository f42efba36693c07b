package page

import (
	"bytes"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// With passkeys an approval is signed: the page asks for a challenge, the person's authenticator signs
// it, and the answer has the signature. The challenge is good for one question, one decision and one
// answer.

const (
	// maxSignings is how many challenges a question has; a new one replaces the oldest.
	maxSignings = 8
	// signingTime is how long a person may take to sign.
	signingTime = 5 * time.Minute
)

// signing is a statement that a person may be about to sign.
type signing struct {
	statement *passkey.Statement
	challenge []byte
	made      time.Time
}

// proven is an approval that was signed.
type proven struct {
	decision elicit.Decision
	proof    stdjson.RawMessage
}

var (
	errUnsigned  = errors.New("nobody has signed it with a passkey on the approvals page")
	errNothing   = errors.New("an approval needs a signature with a passkey, and this one has none")
	errChallenge = errors.New("the signature is for another question, for another decision, or too old; it can be used once")
)

// Prove implements [approval.Prover]. Without Options.Passkeys it demands no proof.
func (p *Page) Prove(r *approval.Request, d elicit.Decision) (stdjson.RawMessage, error) {
	if p.passkeys == nil {
		return nil, nil
	}
	return p.board.proof(r, d)
}

// proof returns the proof that the answer to a question had.
func (b *board) proof(r *approval.Request, d elicit.Decision) (stdjson.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.byRequest[r]
	if q == nil || q.proven == nil || q.proven.decision != d {
		return nil, errUnsigned
	}
	return q.proven.proof, nil
}

// find returns the request of a question, and what the page shows of it.
func (b *board) find(id int) (*approval.Request, *questionView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil {
		return nil, nil
	}
	return q.request, q.entry.Question
}

// keep keeps a statement that a person may be about to sign. It returns false if the question is no
// longer open.
func (b *board) keep(id int, s signing) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil || !q.open() {
		return false
	}
	if len(q.signings) == maxSignings {
		q.signings = slices.Delete(q.signings, 0, 1)
	}
	q.signings = append(q.signings, s)
	return true
}

// take returns the statement with a challenge, and forgets it: it is signed once.
func (b *board) take(id int, challenge []byte) *passkey.Statement {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.questions[id]
	if q == nil {
		return nil
	}
	i := slices.IndexFunc(q.signings, func(s signing) bool { return bytes.Equal(s.challenge, challenge) })
	if i < 0 {
		return nil
	}
	s := q.signings[i]
	q.signings = slices.Delete(q.signings, i, i+1)
	if time.Since(s.made) > signingTime {
		return nil
	}
	return s.statement
}

// challenge is what a browser needs for navigator.credentials.get.
type challenge struct {
	Challenge passkey.Bytes   `json:"challenge"`
	Party     string          `json:"rpId"`
	Keys      []passkey.Bytes `json:"keys"`
	Timeout   int64           `json:"timeout"` // ms
}

// sign answers with the challenge for a decision on a question.
func (p *Page) sign(w http.ResponseWriter, r *http.Request, a access, id string) {
	var in struct {
		Decision elicit.Decision `json:"decision"`
	}
	if _, ok := readBody(w, r, &in); !ok {
		return
	}
	n, ok := a.asked(w, id)
	if !ok {
		return
	}
	if p.passkeys == nil {
		refuse(w, http.StatusNotFound, "this page needs no signatures")
		return
	}
	request, view := p.board.find(n)
	switch {
	case request == nil:
		refuse(w, http.StatusNotFound, "there is no such question, or the page has removed it")
		return
	case view.State != stateOpen:
		reply(w, http.StatusConflict, view.end)
		return
	case !view.offers(in.Decision):
		refuse(w, http.StatusBadRequest, "/decision must be an approval that the question offers")
		return
	}
	party, err := passkey.NewParty(p.origin(r))
	if err != nil {
		refuse(w, http.StatusForbidden, "%v", err)
		return
	}
	keys, err := p.passkeys.Of(party)
	if err == nil && len(keys) == 0 {
		err = noPasskey(party)
	}
	if err != nil {
		refuse(w, http.StatusForbidden, "nothing can be approved: %v", err)
		return
	}
	s, err := newSigning(request, view, in.Decision, party)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "this question cannot be signed: %v", err)
		return
	}
	if !p.board.keep(n, s) {
		refuse(w, http.StatusConflict, "the question is no longer open")
		return
	}
	out := challenge{Challenge: s.challenge, Party: party.ID, Timeout: signingTime.Milliseconds()}
	for _, k := range keys {
		out.Keys = append(out.Keys, k.ID)
	}
	reply(w, http.StatusOK, out)
}

// offers reports whether a question offers an approval.
func (v *questionView) offers(d elicit.Decision) bool {
	switch d {
	case elicit.Approved:
		return true
	case elicit.ApprovedForSession:
		return v.Session
	case elicit.ApprovedAlways:
		return v.Always != nil
	}
	return false
}

// newSigning returns the statement that approves a question as the page shows it.
func newSigning(r *approval.Request, view *questionView, d elicit.Decision, at passkey.Party) (signing, error) {
	question, err := protocol.AppendEvent(nil, r.Event)
	if err != nil {
		return signing{}, err
	}
	asked := *view
	asked.end = end{}
	shown, err := json.Marshal(asked.show(), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return signing{}, err
	}
	sum := sha256.Sum256(shown)
	s := &passkey.Statement{
		Question: question, Shown: sum[:], Thread: r.Thread.ID, Turn: r.Turn, Server: r.Thread.Server, Principal: r.Thread.Principal,
		Call: r.Call(), Decision: d, Origin: at.Origin, At: time.Now().UTC().Truncate(time.Second), Nonce: passkey.NewNonce(),
	}
	if d == elicit.ApprovedAlways {
		s.Rule = view.Always.Words
	}
	challenge, err := s.Hash()
	return signing{s, challenge, time.Now()}, err
}

// check returns the proof of an answer that approves, and nil for others and for a page that needs none.
func (p *Page) check(r *http.Request, id int, in *elicitResult) (*proven, error) {
	d := in.approves()
	switch {
	case p.passkeys == nil && in.Proof != nil:
		return nil, errors.New("this page needs no signatures")
	case p.passkeys == nil || d == "":
		return nil, nil
	case in.Proof == nil:
		return nil, errNothing
	}
	s := p.board.take(id, in.Proof.Challenge())
	if s == nil || s.Decision != d || s.Origin != p.origin(r) {
		return nil, errChallenge
	}
	proof, err := passkey.Prove(p.passkeys, s, in.Proof)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(proof, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return &proven{d, raw}, nil
}

// approves returns the approval that an answer gives, "" if it gives none.
func (in *elicitResult) approves() elicit.Decision {
	if in.Action != "accept" {
		return ""
	}
	d := elicit.Approved
	if in.Content != nil && in.Content.Decision != nil {
		d = elicit.Decision(*in.Content.Decision)
	}
	if !d.Approves() {
		return ""
	}
	return d
}

// asked returns the number of a question that a request is about. It refuses a request that may not
// answer it.
func (a access) asked(w http.ResponseWriter, id string) (int, bool) {
	n, err := strconv.Atoi(id)
	switch {
	case err != nil:
		refuse(w, http.StatusNotFound, "there is no such question")
	case a.question != 0 && a.question != n:
		refuse(w, http.StatusForbidden, "the link was to another question")
	default:
		return n, true
	}
	return 0, false
}
