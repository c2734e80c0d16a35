/** SOAP: what CXF binds, in the namespace of the measured server. */
@XmlSchema(namespace = "urn:stentor:v1", elementFormDefault = XmlNsForm.QUALIFIED)
package stentor.lab.rivals.soap;

import jakarta.xml.bind.annotation.XmlNsForm;
import jakarta.xml.bind.annotation.XmlSchema;
