package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// padded is how long what is encrypted is, with its delimiter and padding.
	padded = 128
	// recordSize is what the header says; there is one record, which is shorter.
	recordSize = 4096
	// validity is how long a token is valid. RFC 8292 allows a day.
	validity = 12 * time.Hour
)

// seal encrypts empty text for a browser, padded.
func seal(browser *ecdh.PublicKey, auth []byte) ([]byte, error) {
	once, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, 16)
	rand.Read(salt) // never fails
	record := make([]byte, padded)
	record[0] = 2 // the delimiter of the last record, after no text
	return encrypt(browser, auth, once, salt, record)
}

// encrypt makes the body of a message from its only record (RFC 8291, 3.4; RFC 8188, 2).
func encrypt(browser *ecdh.PublicKey, auth []byte, once *ecdh.PrivateKey, salt, record []byte) ([]byte, error) {
	shared, err := once.ECDH(browser)
	if err != nil {
		return nil, err
	}
	public := once.PublicKey().Bytes()
	text, err := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(browser.Bytes())+string(public), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, text, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, text, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32(append([]byte{}, salt...), recordSize)
	body = append(append(body, byte(len(public))), public...)
	return gcm.Seal(body, nonce, record, nil), nil
}

// token returns a JSON Web Token that says to one push service whose wake-up this is (RFC 8292, 2).
func (s *Sender) token(audience string, now time.Time) (string, error) {
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub"`
	}{audience, now.Add(validity).Unix(), Contact})
	if err != nil {
		return "", err
	}
	text := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return text + "." + encode(signature), nil
}
