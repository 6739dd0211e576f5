package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var timeTexts = []string{
	"2024-02-29T03:04:05Z", "2023-02-29T03:04:05Z", "2024-01-31T23:59:59Z", "2024-04-31T00:00:00Z", "2024-01-02T03:04:05.5Z",
	"2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05,5Z", "2024-01-02T03:04:05.Z",
	"2024-01-02T03:04:05+02:00", "2024-01-02T03:04:05.000001-02:30", "2024-01-02T23:04:05-07:00", "0001-01-01T00:00:00Z",
	"0001-01-01T00:00:00.000000Z", "0001-01-01T02:00:00+02:00", "0001-01-01T00:00:01Z", "2024-01-02T3:04:05Z", "2024-1-2T03:04:05Z",
	"2024-13-02T03:04:05Z", "2024-00-02T03:04:05Z", "2024-01-00T03:04:05Z", "2024-01-32T03:04:05Z", "2024-01-02T24:04:05Z",
	"2024-01-02T03:60:05Z", "2024-01-02T03:04:60Z", "2024-01-02T03:04:05", "2024-01-02T03:04:05z", "2024-01-02t03:04:05Z",
	"2024-01-02 03:04:05Z", "2024-01-02", "yesterday", "", "2024", "24-01-02T03:04:05Z", "2024-01-02T03:04:05ZZ",
	"2024-01-02T03:04:05+25:00", "2024-01-02T03:04:05+01:61", "2024-01-02T03:04:05+0100", "2024-01-02T03:04:05*01:00",
	"2024-01-02T03:04:05+24:60", "2024-01-02T03:04:05.12345Z", "2024-01-02T03:04:05.1234567Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z",
	"20x4-01-02T03:04:05Z", "2024-01-02T03:4:05Z", "2024-01-02T03:04:5Z", "-024-01-02T03:04:05Z", "2024-01-02T03:04:05.123456Zé",
}

// timeFixtures has a line per layout and text: layout, text, ok or error, and what is written or the error.
func timeFixtures() []byte {
	var out bytes.Buffer
	line := func(layout, text string, into json.Unmarshaler) {
		quoted := compact(text)
		if err := into.UnmarshalJSON(quoted); err != nil {
			fmt.Fprintf(&out, "%s\t%s\terror\t%v\n", layout, text, err)
			return
		}
		written := bytes.Trim(compact(into), `"`)
		fmt.Fprintf(&out, "%s\t%s\tok\t%s\n", layout, text, written)
	}
	for _, text := range timeTexts {
		line("second", text, &meta.Time{})
		line("micro", text, &meta.MicroTime{})
	}
	return out.Bytes()
}
