package main

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

var quantityTexts = []string{
	"0", "00", "1", "01", "+1", "-1", "+", "-", ".", "1.", ".5", "-.5", "0.5", "1.5", "1.500", "1.50", "1000m", "1500m",
	"100m", "0.1m", "0.1n", "1n", "1u", "0.0000000001", "1000", "1000000", "1000k", "999k", "1024", "1024Ki", "1025Ki",
	"1Ki", "0Ki", "512Ki", "512Mi", "1000Mi", "1048576Ki", "1.5Gi", "1.1Gi", "0.5Ki", "0.5Gi", "1023Mi", "8Gi", "08Gi",
	"+8Gi", "-8Gi", "-1024Ki", "1Ti", "1Pi", "1Ei", "7Ei", "8Ei", "9Ei", "-9Ei", "0.1Ei", "1.0000000001Ki",
	"0.00000000001Ki", "1e3", "1E3", "12e6", "1e-3", "15e2", "1e1", "1e2", "100e-2", "1e-10", "1e21", "1000E", "1E", "1k",
	"1K", "1P", "12345678901234567890", "12345678901234567890123", "123456789012345678901234k", "0.1234567891",
	"-0.1234567891", "9223372036854775807", "9223372036854775808", "9223372036854775807Ki", "99999999999999999999Mi",
	"1.23456789012345678901234567890Gi", "m", "Ki", "1mi", "1 ", " 1", "1x", "x", "", "1..2", "1.2.3", "1e", "1e+", "1e+3",
	"1e3.5", "1eE3", "--1", "1-", "1m5", "1Mi5", "1e99999999999999999999", "0e5", "0m", "-0", "0.0", "1000000n", "1500000u",
	"100000000000000000000Ki", "3072Mi", "4096Mi", "123456Ki", "1099511627776", "1099511627776Ki", "10M", "1024M", "0.25",
	"0.125", "250m", "2.5e3", "2.5e4", "1e6Ki", "18446744073709551615Ki", "7.999999999999999999999Ei",
}

// quantityFixtures has a line per text: the text, ok or error, and the canonical form or the error.
func quantityFixtures() []byte {
	var out bytes.Buffer
	for _, text := range quantityTexts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Fprintf(&out, "%s\terror\t%v\n", text, err)
			continue
		}
		fmt.Fprintf(&out, "%s\tok\t%s\n", text, quantity.String())
	}
	return out.Bytes()
}
