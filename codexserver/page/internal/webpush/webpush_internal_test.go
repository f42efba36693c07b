package webpush

import (
	"context"
	"crypto/ecdh"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8291, 5.
const (
	browserKey = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	authKey    = "BTBZMqHH6r4Tts7J_aSIgg"
)

// TestEncrypt encrypts the example of RFC 8291.
func TestEncrypt(t *testing.T) {
	browser, err := ecdh.P256().NewPublicKey(bytesOf(t, browserKey))
	if err != nil {
		t.Fatal(err)
	}
	once, err := ecdh.P256().NewPrivateKey(bytesOf(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encrypt(browser, bytesOf(t, authKey), once, bytesOf(t, "DGv6ra1nlYgDCS1FRnbzlw"), []byte("When I grow up, I want to be a watermelon\x02"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_" +
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if encode(got) != want {
		t.Errorf("encrypted to %s, want %s", encode(got), want)
	}
}

// TestSubscription reads what a browser, or somebody in its place, may send.
func TestSubscription(t *testing.T) {
	ours, err := NewSender(nil)
	if err != nil {
		t.Fatal(err)
	}
	const good = "https://push.example.com/send/abc"
	for _, tt := range []struct{ name, endpoint, key, auth, want string }{
		{"as browsers send it", good + ":d-_?token=x", browserKey, authKey, ""},
		{"with padding", good, browserKey + "=", authKey + "==", ""},
		{"a public address", "https://8.8.8.8/x", browserKey, authKey, ""},
		{"not encrypted", "http://push.example.com/", browserKey, authKey, "endpoint"},
		{"no scheme", "push.example.com/", browserKey, authKey, "endpoint"},
		{"another scheme", "file:///etc/passwd", browserKey, authKey, "endpoint"},
		{"empty", "", browserKey, authKey, "endpoint"},
		{"a password", "https://a:b@push.example.com/", browserKey, authKey, "endpoint"},
		{"too long", good + strings.Repeat("x", 1000), browserKey, authKey, "endpoint"},
		{"a line break", good + "\r\nX: y", browserKey, authKey, "endpoint"},
		{"another port", "https://push.example.com:22/", browserKey, authKey, "endpoint"},
		{"this machine", "https://localhost/", browserKey, authKey, "endpoint"},
		{"this machine by address", "https://127.0.0.1/", browserKey, authKey, "endpoint"},
		{"this machine by number", "https://2130706433/", browserKey, authKey, "endpoint"},
		{"this machine by IPv6", "https://[::1]/", browserKey, authKey, "endpoint"},
		{"this machine as both", "https://[::ffff:127.0.0.1]/", browserKey, authKey, "endpoint"},
		{"the network", "https://192.168.0.1/", browserKey, authKey, "endpoint"},
		{"a name of the network", "https://printer.local/", browserKey, authKey, "endpoint"},
		{"the metadata of a cloud", "https://169.254.169.254/latest", browserKey, authKey, "endpoint"},
		{"no key", good, "", authKey, "p256dh"},
		{"a key that is not base64url", good, "+/", authKey, "p256dh"},
		{"a key beside the curve", good, browserKey[:86] + "8", authKey, "p256dh"},
		{"the point at infinity", good, "AA", authKey, "p256dh"},
		{"no secret", good, browserKey, "", "auth"},
		{"a short secret", good, browserKey, authKey[:20], "auth"},
		{"a long secret", good, browserKey, authKey + authKey[:4], "auth"},
	} {
		s, err := ours.Subscription(tt.endpoint, tt.key, tt.auth)
		switch {
		case tt.want == "" && (err != nil || s.Endpoint() != tt.endpoint):
			t.Errorf("%s: %v, %v", tt.name, s, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
			t.Errorf("%s: %v, want an error about %s", tt.name, err, tt.want)
		}
	}
}

// TestDial checks that a name that leads to this machine, as after DNS rebinding, is not connected to,
// whatever the subscription was when it was read.
func TestDial(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was connected to") }))
	defer server.Close()
	s, err := NewSender(server.Client()) // takes each address
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Subscription(strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+"/secret", browserKey, authKey)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = NewSender(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(context.Background(), to); err == nil || !strings.Contains(err.Error(), "not public") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}
