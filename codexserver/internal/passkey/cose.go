package passkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
)

// The algorithms, by their numbers in COSE, in the order in which the page offers them.
const (
	algES256 = -7
	algEdDSA = -8
	algRS256 = -257
)

// Algorithms returns the algorithms of keys, by their numbers in COSE, the preferred first.
func Algorithms() []int { return []int{algES256, algEdDSA, algRS256} }

// The bounds of RSA keys, in bits.
const (
	minRSA = 2048
	maxRSA = 8192
)

// publicKey is a key that checks signatures.
type publicKey struct {
	algorithm string
	key       crypto.PublicKey
}

// readKey reads a COSE key, and returns what follows it.
func readKey(b []byte) (*publicKey, []byte, error) {
	v, rest, err := readCBOR(b)
	if err != nil {
		return nil, nil, fmt.Errorf("the key: %w", err)
	}
	m, _ := v.(map[any]any)
	kind, _ := m[int64(1)].(int64)
	algorithm, _ := m[int64(3)].(int64)
	var key *publicKey
	switch {
	case kind == 2 && algorithm == algES256:
		key, err = readES256(m)
	case kind == 1 && algorithm == algEdDSA:
		key, err = readEdDSA(m)
	case kind == 3 && algorithm == algRS256:
		key, err = readRS256(m)
	default:
		err = fmt.Errorf("the algorithm %d with keys of the type %d is not ES256, EdDSA or RS256", algorithm, kind)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the key: %w", err)
	}
	return key, rest, nil
}

var (
	errPoint = errors.New("not a point of its curve")
	errRSA   = fmt.Errorf("not an RSA key of %d to %d bits", minRSA, maxRSA)
)

func readES256(m map[any]any) (*publicKey, error) {
	curve, _ := m[int64(-1)].(int64)
	x, _ := m[int64(-2)].([]byte)
	y, _ := m[int64(-3)].([]byte)
	if curve != 1 || len(m) != 5 || len(x) != 32 || len(y) != 32 {
		return nil, errPoint
	}
	point := append(append([]byte{4}, x...), y...)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, errPoint
	}
	return &publicKey{"ES256", key}, nil
}

func readEdDSA(m map[any]any) (*publicKey, error) {
	curve, _ := m[int64(-1)].(int64)
	x, _ := m[int64(-2)].([]byte)
	if curve != 6 || len(m) != 4 || len(x) != ed25519.PublicKeySize {
		return nil, errPoint
	}
	return &publicKey{"EdDSA", ed25519.PublicKey(x)}, nil
}

func readRS256(m map[any]any) (*publicKey, error) {
	n, _ := m[int64(-1)].([]byte)
	e, _ := m[int64(-2)].([]byte)
	if len(m) != 4 || len(n) > maxRSA/8 || len(e) == 0 || len(e) > 4 {
		return nil, errRSA
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e).Int64()
	if modulus.BitLen() < minRSA || modulus.Bit(0) == 0 || exponent < 3 || exponent%2 == 0 || exponent > 1<<31-1 {
		return nil, errRSA
	}
	return &publicKey{"RS256", &rsa.PublicKey{N: modulus, E: int(exponent)}}, nil
}

// signed reports whether the key made the signature of a text.
func (k *publicKey) signed(text, signature []byte) bool {
	sum := sha256.Sum256(text)
	switch key := k.key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(key, text, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
	}
	return false
}
