/** SOAP: the beans of REST in a namespace (the build copies Beans), in a wrapper for each operation. */
@XmlSchema(namespace = "urn:stentor:lab", elementFormDefault = XmlNsForm.QUALIFIED)
package stentor.lab.cxf.soap;

import javax.xml.bind.annotation.XmlNsForm;
import javax.xml.bind.annotation.XmlSchema;
